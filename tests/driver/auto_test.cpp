// The portfolio, with parts of our own under its parts' names.
#include "lowtide/driver/auto.h"

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"

#include "support/part.h"

namespace lowtide {
namespace {

TEST_CASE("auto: a part that takes all it gets does not keep the others from their turn") {
  // Op 0 is computed twice, so that the plan is not proven optimal.
  const Graph graph = late_reader();
  solve::SolverTable table;
  table.add(std::make_unique<Part>("evict", std::vector<OpId>()));
  table.add(
      std::make_unique<Part>("greedy", std::vector{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)}));
  table.add(driver::make_auto());
  const Problem problem{.graph = graph, .budget = Bytes(30)};
  for (const std::int64_t work : {3'000'000, 30'000'000}) {
    driver::Request request;
    request.limits.work = work;
    const driver::Answer answer = driver::solve(table, problem, request);
    CHECK(answer.outcome.found_by == "greedy");
    CHECK(answer.outcome.stopped_by == StopReason::work_limit);
  }
}

TEST_CASE("auto: twremat is asked where the quick ones have no plan, and only there") {
  const Graph graph = late_reader();
  const std::vector<OpId> over{OpId(0), OpId(1), OpId(2), OpId(3)};
  const std::vector<OpId> within{OpId(1), OpId(2), OpId(0), OpId(3)};
  for (const bool quick : {false, true}) {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("greedy", quick ? within : over));
    table.add(std::make_unique<Part>("twremat", within));
    table.add(driver::make_auto());
    const Problem problem{.graph = graph, .budget = Bytes(21)};
    driver::Request request;
    request.limits.work = 3'000'000;
    const driver::Answer answer = driver::solve(table, problem, request);
    CHECK(answer.outcome.found_by == (quick ? "greedy" : "twremat"));
  }
}

// A plan in another order alone must not keep the given one from what it would get by itself.
TEST_CASE("auto: with a free order the given one is begun as it would be alone") {
  const Graph graph = late_reader();
  const std::vector<OpId> poor{OpId(1), OpId(0), OpId(2), OpId(1), OpId(2), OpId(3)};
  const std::vector<OpId> better{OpId(0), OpId(1), OpId(2), OpId(0), OpId(3)};
  driver::Request request;
  request.limits.work = 100'000;
  SUBCASE("twremat finds the better plan") {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("order", poor, Order::free));
    table.add(std::make_unique<Part>("twremat", better, Order::given));
    table.add(driver::make_auto());
    const driver::Answer answer =
        driver::solve(table, {.graph = graph, .budget = Bytes(30)}, request);
    CHECK(answer.outcome.found_by == "twremat");
  }
  SUBCASE("a quick one does, after others that take long") {
    solve::SolverTable table;
    table.add(std::make_unique<Part>("evict", std::vector<OpId>()));
    table.add(std::make_unique<Part>("greedy", better, Order::given));
    table.add(driver::make_auto());
    request.limits.work = 60'000;
    const driver::Answer answer =
        driver::solve(table, {.graph = graph, .budget = Bytes(30)}, request);
    CHECK(answer.outcome.found_by == "greedy");
  }
}

}  // namespace
}  // namespace lowtide
