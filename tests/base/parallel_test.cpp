#include "lowtide/base/parallel.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/limits.h"

namespace lowtide {
namespace {

TEST_CASE("parallel: each task runs once, whatever the number of threads") {
  for (const int threads : {-1, 0, 1, 2, 7, 64}) {
    CAPTURE(threads);
    std::vector<std::atomic<int>> runs(100);
    parallel_for(runs.size(), threads, [&](std::size_t i) { ++runs[i]; });
    for (const auto& count : runs) CHECK(count == 1);
  }
  parallel_for(0, 4, [](std::size_t) { FAIL("there is no task"); });
}

TEST_CASE("parallel: a task that throws ends the run, and nothing is lost") {
  for (const int threads : {1, 4}) {
    std::atomic<int> ran{0};
    const auto task = [&](std::size_t i) {
      ++ran;
      if (i >= 3) throw std::runtime_error(std::to_string(i));
    };
    CHECK_THROWS_WITH_AS(parallel_for(1000, threads, task), "3", std::runtime_error);
    CHECK(ran >= 4);
    CHECK(ran <= 3 + 2 * threads);
  }
}

TEST_CASE("parallel: a token is cancelled with its parent, and not the other way round") {
  CancelToken parent;
  CancelToken child(&parent);
  CancelToken alone(nullptr);
  CHECK_FALSE(child.cancelled());
  CancelToken other(&parent);
  other.cancel();
  CHECK_FALSE(parent.cancelled());
  CHECK_FALSE(child.cancelled());
  parent.cancel();
  CHECK(child.cancelled());
  CHECK_FALSE(alone.cancelled());
}

}  // namespace
}  // namespace lowtide
