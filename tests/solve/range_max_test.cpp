// Sums of ranges against a plain list.
#include "lowtide/solve/sequence/range_max.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"

namespace lowtide {
namespace {

TEST_CASE("range_max: adds to ranges and returns the maximum") {
  Random random(1);
  for (std::size_t count = 1; count <= 70; ++count) {
    CAPTURE(count);
    std::vector<std::int64_t> plain(count);
    for (auto& each : plain) each = random.between(-50, 50);
    solve::RangeMax tree(plain);
    for (int i = 0; i < 60; ++i) {
      const std::size_t begin = random.below(count + 1), end = random.below(count + 1);
      const std::int64_t value = random.between(-20, 20);
      tree.add(begin, end, value);
      for (std::size_t k = begin; k < end; ++k) plain[k] += value;
      REQUIRE(tree.values(count) == plain);
      if (begin < end)
        REQUIRE(tree.largest(begin, end) ==
                *std::max_element(plain.begin() + static_cast<std::ptrdiff_t>(begin),
                                  plain.begin() + static_cast<std::ptrdiff_t>(end)));
      // Beyond the last position there are zeros.
      const std::int64_t largest = *std::max_element(plain.begin(), plain.end());
      REQUIRE(tree.largest() >= largest);
      REQUIRE(tree.largest() <= std::max<std::int64_t>(largest, 0));
    }
  }
}

}  // namespace
}  // namespace lowtide
