// The vector loops against plain ones: every length around the width of a vector, every alignment.
#include <algorithm>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/solve/local/common/state/kernels.h"

namespace lowtide::solve::local {
namespace {

constexpr std::size_t kMargin = 16;

// Whole numbers as a profile has them: some at the level itself, some far below.
std::vector<double> some_values(Random& random, std::size_t count, double level) {
  std::vector<double> values(count);
  for (double& value : values) {
    value = static_cast<double>(random.between(-40, 40)) + level;
    if (random.chance(0.2)) value -= 0x1p52;
    if (random.chance(0.2)) value = level;
  }
  return values;
}

template <class Visit>
void for_each_range(Visit visit) {
  Random random(1);
  for (std::size_t count = 0; count <= 3 * kMargin; ++count)
    for (std::size_t from = 0; from < kMargin; ++from) {
      const double level = random.chance(0.5) ? 0 : static_cast<double>(random.between(0, 1 << 30));
      std::vector<double> values = some_values(random, count + 2 * kMargin, level);
      visit(random, values, from, count, level);
    }
}

TEST_CASE("search kernels: add changes the range and nothing else") {
  for_each_range(
      [](Random& random, std::vector<double>& values, std::size_t from, std::size_t count, double) {
        const auto delta = static_cast<double>(random.between(-1000, 1000));
        std::vector<double> expected = values;
        for (std::size_t i = from; i < from + count; ++i) expected[i] += delta;
        kernels().add(values.data() + from, count, delta);
        CHECK(values == expected);
      });
}

TEST_CASE("search kernels: the maximum") {
  for_each_range(
      [](Random&, const std::vector<double>& values, std::size_t from, std::size_t count, double) {
        if (count == 0) return;
        const double* begin = values.data() + from;
        CHECK(kernels().max(begin, count) == *std::max_element(begin, begin + count));
      });
}

TEST_CASE("search kernels: the least above a floor") {
  for_each_range([](Random& random, const std::vector<double>& values, std::size_t from,
                    std::size_t count, double level) {
    const double floor = random.chance(0.5) ? level : level - 0x1p51;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = from; i < from + count; ++i)
      if (values[i] > floor) least = std::min(least, values[i]);
    CHECK(kernels().least_above(values.data() + from, count, floor) == least);
  });
}

TEST_CASE("search kernels: clamped sum") {
  for_each_range([](Random& random, const std::vector<double>& values, std::size_t from,
                    std::size_t count, double level) {
    const double caps[] = {0, 1, 17, 0x1p50};
    const double cap = caps[random.below(4)];
    double expected = 0;
    for (std::size_t i = from; i < from + count; ++i)
      expected += std::min(std::max(values[i] - level, 0.0), cap);
    CHECK(kernels().clamped_sum(values.data() + from, count, level, cap) == expected);
  });
}

}  // namespace
}  // namespace lowtide::solve::local
