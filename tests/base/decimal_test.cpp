// Numbers with a unit are read exactly, or said to be too long.
#include "lowtide/base/decimal.h"

#include <doctest/doctest.h>

namespace lowtide {

TEST_CASE("decimal: a number is a fraction and the text after it") {
  const Decimal number = read_decimal(without_spaces(" 12.50 GB / S"));
  CHECK(number.digits == 1250);
  CHECK(number.scale == 100);
  CHECK(number.count == 4);
  CHECK(number.point);
  CHECK(number.suffix == "gb/s");
}

TEST_CASE("decimal: a second point, a sign or nothing ends the number") {
  CHECK(read_decimal("1.2.3").suffix == ".3");
  CHECK(read_decimal("-1").count == 0);
  CHECK(read_decimal("-1").suffix == "-1");
  CHECK(read_decimal(".").count == 0);
  CHECK(read_decimal("").count == 0);
  CHECK(read_decimal(".5%").scale == 10);
}

TEST_CASE("decimal: numbers beyond 63 bits are too long") {
  CHECK_FALSE(read_decimal("9223372036854775807").too_long);
  CHECK(read_decimal("9223372036854775808").too_long);
  CHECK(read_decimal("0.0000000000000000001").too_long);
}

}  // namespace lowtide
