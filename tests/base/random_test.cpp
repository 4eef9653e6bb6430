#include "lowtide/base/random.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace lowtide {

TEST_CASE("random: the stream of a seed never changes") {
  Random random(0);
  // xoshiro256** seeded by SplitMix64, computed by other means.
  CHECK(random.next() == 0x99ec5f36cb75f2b4u);
  CHECK(random.next() == 0xbf6e1f784956452au);
  CHECK(random.next() == 0x1a5f849d4933e6e0u);
  CHECK(Random(42).next() == 0x15780b2e0c2ec716u);
  CHECK(Random(1).next() != Random(2).next());
}

TEST_CASE("random: drawn numbers follow from the stream alone") {
  Random random(7);
  CHECK(random.below(1000) == 700);
  CHECK(random.between(-5, 5) == -2);
  CHECK(random.uniform() == 0.8396274618764198);
  std::vector<int> items = {1, 2, 3, 4, 5, 6, 7, 8};
  random.shuffle(items);
  CHECK(items == std::vector<int>{3, 4, 2, 5, 1, 6, 7, 8});
}

TEST_CASE("random: numbers stay in their ranges and reach the ends") {
  Random random(1);
  bool low = false, high = false;
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(random.below(1) == 0);
    REQUIRE(random.below(7) < 7);
    const double share = random.uniform();
    REQUIRE(share >= 0);
    REQUIRE(share < 1);
    const std::int64_t number = random.between(-3, 3);
    REQUIRE(number >= -3);
    REQUIRE(number <= 3);
    low = low || number == -3;
    high = high || number == 3;
  }
  CHECK(low);
  CHECK(high);
  CHECK_FALSE(random.chance(0));
  CHECK(random.chance(1));
}

TEST_CASE("random: numbers are about as likely as one another") {
  Random random(2);
  std::vector<int> count(10, 0);
  for (int i = 0; i < 100'000; ++i) ++count[random.below(10)];
  for (int c : count) CHECK(std::abs(c - 10'000) < 500);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += random.uniform();
  CHECK(sum == doctest::Approx(50'000).epsilon(0.01));
}

TEST_CASE("random: a shuffle is a permutation") {
  Random random(3);
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  const std::vector<int> before = items;
  random.shuffle(items);
  CHECK(items != before);
  std::sort(items.begin(), items.end());
  CHECK(items == before);
  std::vector<int> none, one = {4};
  random.shuffle(none);
  random.shuffle(one);
  CHECK(none.empty());
  CHECK(one == std::vector<int>{4});
}

}  // namespace lowtide
