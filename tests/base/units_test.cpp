#include "lowtide/base/units.h"

#include <type_traits>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"

namespace lowtide {

TEST_CASE("units: bytes and ticks do not mix, nor with plain numbers") {
  static_assert(!std::is_convertible_v<Bytes, Ticks>);
  static_assert(!std::is_constructible_v<Bytes, Ticks>);
  static_assert(!std::is_convertible_v<std::int64_t, Bytes>);
  CHECK(Bytes().count() == 0);
  CHECK(Bytes(3) + Bytes(4) == Bytes(7));
  CHECK(Bytes(3) - Bytes(4) == Bytes(-1));
  CHECK(Ticks(3) < Ticks(4));
  Ticks sum(1);
  sum += Ticks(5);
  sum -= Ticks(2);
  CHECK(sum == Ticks(4));
  CHECK(Bytes::max().count() == INT64_MAX);
}

TEST_CASE("units: checked sums throw where 63 bits end") {
  CHECK(checked_add(Bytes(INT64_MAX - 1), Bytes(1)) == Bytes::max());
  CHECK(checked_add(Bytes::max(), Bytes(-1)) == Bytes(INT64_MAX - 1));
  CHECK_THROWS_AS(checked_add(Bytes::max(), Bytes(1)), OverflowError);
  CHECK_THROWS_AS(checked_add(Ticks(INT64_MAX / 2 + 1), Ticks(INT64_MAX / 2 + 1)), OverflowError);
  CHECK_THROWS_AS(checked_add(Bytes(INT64_MIN), Bytes(-1)), OverflowError);
}

TEST_CASE("units: products and quotients do not overflow on the way") {
  CHECK(checked_mul_div(7, 3, 2, Rounding::floor) == 10);
  CHECK(checked_mul_div(7, 3, 2, Rounding::ceil) == 11);
  CHECK(checked_mul_div(8, 3, 2, Rounding::floor) == 12);
  CHECK(checked_mul_div(8, 3, 2, Rounding::ceil) == 12);
  CHECK(checked_mul_div(0, INT64_MAX, 1, Rounding::ceil) == 0);
  CHECK(checked_mul_div(INT64_MAX, INT64_MAX, INT64_MAX, Rounding::floor) == INT64_MAX);
  CHECK(checked_mul_div(INT64_MAX, 999, 1000, Rounding::floor) == 9214148664817921031);
  CHECK(checked_mul_div(INT64_MAX, 999, 1000, Rounding::ceil) == 9214148664817921032);
  CHECK_THROWS_AS(checked_mul_div(INT64_MAX, 2, 1, Rounding::floor), OverflowError);
  CHECK_THROWS_AS(checked_mul_div(INT64_MAX, INT64_MAX, 1, Rounding::floor), OverflowError);
  // The quotient fits, rounded up it does not.
  CHECK_THROWS_AS(checked_mul_div(INT64_MAX, 4, 3, Rounding::ceil), OverflowError);
}

TEST_CASE("units: products and quotients agree with plain arithmetic where that suffices") {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t a = random.between(0, 1'000'000), b = random.between(0, 1'000'000);
    const std::int64_t c = random.between(1, 1000);
    REQUIRE(checked_mul_div(a, b, c, Rounding::floor) == a * b / c);
    REQUIRE(checked_mul_div(a, b, c, Rounding::ceil) == (a * b + c - 1) / c);
  }
}

}  // namespace lowtide
