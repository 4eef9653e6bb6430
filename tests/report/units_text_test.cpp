// Rounding, and the places where one unit ends and the next begins.
#include "lowtide/report/units_text.h"

#include <limits>

#include <doctest/doctest.h>

namespace lowtide {
namespace {

TEST_CASE("units: bytes") {
  const auto text = [](std::int64_t count) { return report::bytes_text(Bytes(count)); };
  CHECK(text(0) == "0 B");
  CHECK(text(1023) == "1023 B");
  CHECK(text(1024) == "1.00 KiB");
  CHECK(text(1536) == "1.50 KiB");
  CHECK(text(10240) == "10.0 KiB");
  CHECK(text(102400) == "100 KiB");
  CHECK(text(1047552) == "1023 KiB");
  CHECK(text(1048575) == "1.00 MiB");
  CHECK(text(8000000000) == "7.45 GiB");
  CHECK(text(std::int64_t{8} << 30) == "8.00 GiB");
  CHECK(text(INT64_MAX) == "8.00 EiB");
  CHECK(text(-1536) == "-1.50 KiB");
}

TEST_CASE("units: ticks in the graph's unit") {
  CHECK(report::ticks_text(Ticks(999), TickUnit::ns) == "999 ns");
  CHECK(report::ticks_text(Ticks(1000), TickUnit::ns) == "1.00 us");
  CHECK(report::ticks_text(Ticks(12300000), TickUnit::ns) == "12.3 ms");
  CHECK(report::ticks_text(Ticks(999999), TickUnit::ns) == "1.00 ms");
  CHECK(report::ticks_text(Ticks(12300), TickUnit::us) == "12.3 ms");
  CHECK(report::ticks_text(Ticks(61000), TickUnit::ms) == "61.0 s");
  CHECK(report::ticks_text(Ticks(7200000), TickUnit::ms) == "7200 s");
  CHECK(report::ticks_text(Ticks(12300000000), TickUnit::flop) == "12.3 GFLOP");
  CHECK(report::ticks_text(Ticks(7), TickUnit::flop) == "7 FLOP");
  CHECK(report::ticks_text(Ticks(12345), TickUnit::none) == "12,345");
}

TEST_CASE("units: counts") {
  CHECK(report::count_text(0) == "0");
  CHECK(report::count_text(999) == "999");
  CHECK(report::count_text(1000) == "1,000");
  CHECK(report::count_text(-1234567) == "-1,234,567");
  CHECK(report::count_text(INT64_MIN) == "-9,223,372,036,854,775,808");
}

TEST_CASE("units: percentages") {
  CHECK(report::percent_text(0) == "0.00 %");
  CHECK(report::percent_text(4.267) == "4.27 %");
  CHECK(report::percent_text(123.4) == "123.40 %");
  CHECK(report::percent_text(0.0042) == "0.004 %");
  CHECK(report::percent_text(-1.5) == "-1.50 %");
  CHECK(report::percent_text(std::numeric_limits<double>::infinity()) == "infinite");
}

}  // namespace
}  // namespace lowtide
