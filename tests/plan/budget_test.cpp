#include "lowtide/plan/budget.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"

namespace lowtide {

namespace {

std::int64_t bytes_of(std::string_view text) {
  const BudgetSpec spec = parse_budget(text);
  REQUIRE(spec.kind == BudgetSpec::Kind::bytes);
  return spec.bytes.count();
}

void share_is(std::string_view text, BudgetSpec::Kind kind, std::int64_t numerator,
              std::int64_t denominator) {
  const BudgetSpec spec = parse_budget(text);
  CHECK(spec.kind == kind);
  // As fractions; no matter how they are reduced.
  CHECK(spec.numerator * denominator == numerator * spec.denominator);
}

void refused(std::string_view text, std::string_view words) {
  CAPTURE(text);
  try {
    parse_budget(text);
    FAIL("taken for a budget");
  } catch (const InputError& error) {
    CHECK(error.place() == "budget \"" + std::string(text) + "\"");
    CHECK_MESSAGE(error.reason().find(words) != std::string::npos, error.reason());
    CHECK(error.reason().find("8GiB") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("budget: bytes with and without a unit") {
  CHECK(bytes_of("0") == 0);
  CHECK(bytes_of("1000000") == 1'000'000);
  CHECK(bytes_of("12b") == 12);
  CHECK(bytes_of("12 bytes") == 12);
  CHECK(bytes_of("8GiB") == std::int64_t{8} << 30);
  CHECK(bytes_of("8gib") == std::int64_t{8} << 30);
  CHECK(bytes_of(" 512 MB ") == 512'000'000);
  CHECK(bytes_of("3KiB") == 3072);
  CHECK(bytes_of("3kB") == 3000);
  CHECK(bytes_of("2TiB") == std::int64_t{2} << 40);
  CHECK(bytes_of("2 TB") == 2'000'000'000'000);
  CHECK(bytes_of("9223372036854775807") == INT64_MAX);
}

TEST_CASE("budget: decimals are exact, and fractions of a byte are dropped") {
  CHECK(bytes_of("1.5KiB") == 1536);
  CHECK(bytes_of("1.5") == 1);
  CHECK(bytes_of(".5kB") == 500);
  CHECK(bytes_of("5.kB") == 5000);
  CHECK(bytes_of("0.0001kB") == 0);
  CHECK(bytes_of("2.3 GB") == 2'300'000'000);
  CHECK(bytes_of("0.1TB") == 100'000'000'000);
}

TEST_CASE("budget: shares are exact fractions") {
  using Kind = BudgetSpec::Kind;
  share_is("80%", Kind::share_of_peak, 80, 100);
  share_is("66.6 %", Kind::share_of_peak, 666, 1000);
  share_is("120%", Kind::share_of_peak, 120, 100);
  share_is("0%", Kind::share_of_peak, 0, 1);
  share_is("act:50%", Kind::share_of_activations, 50, 100);
  share_is("ACT: 12.25%", Kind::share_of_activations, 1225, 10000);
}

TEST_CASE("budget: invalid budgets are refused with a helpful message") {
  refused("", "is not a number");
  refused("   ", "is not a number");
  refused("%", "is not a number");
  refused("GiB", "is not a number");
  refused(".", "is not a number");
  refused("-5", "is negative");
  refused("-5%", "is negative");
  refused("+5", "is not a number");
  refused("8 GBit", "the unit \"gbit\" is not known");
  refused("8G", "the unit \"g\" is not known");
  refused("8GiB%", "the unit \"gib%\" is not known");
  refused("80%%", "the unit \"%%\" is not known");
  refused("1e9", "the unit \"e9\" is not known");
  refused("1,000", "the unit \",000\" is not known");
  refused("1.2.3", "the unit \".3\" is not known");
  refused("0x10", "the unit");
  refused("act:", "is not a number");
  refused("act:8GiB", "takes a share");
  refused("act:50", "takes a share");
  refused("act:act:50%", "is not a number");
  refused("9223372036854775808", "too large");
  refused("99999999999999999999999", "too large");
  refused("9223372036854775807KiB", "larger than any memory");
  refused("10000000TiB", "larger than any memory");
  refused("0.6", "did you mean 60%?");
  refused("1.0", "did you mean 100%?");
  refused("0.125", "did you mean 12.5%?");
  refused("act:0.5", "did you mean act:50%?");
  refused("0.00000000000000000001%", "too many digits");
}

TEST_CASE("overhead: a percentage of the time the graph takes once, exact and rounded down") {
  const Ticks base(1999);
  const auto limit = [&](std::string_view text) { return overhead_limit(text, base).count(); };
  CHECK(limit("0%") == 1999);
  CHECK(limit("5%") == 1999 + 99);
  CHECK(limit("5") == limit("5%"));
  CHECK(limit("0.05 %") == 1999);
  CHECK(limit("100") == 2 * 1999);
  CHECK(limit("9000000000000000000%") == Ticks::max().count());
  for (const std::string text : {"", "x", "-1%", "5 GiB", "act:5%"}) {
    CAPTURE(text);
    try {
      overhead_limit(text, base);
      FAIL("taken for an overhead");
    } catch (const InputError& error) {
      CHECK(error.place() == "overhead \"" + text + "\"");
      CHECK(error.reason().find("write a percentage") != std::string::npos);
    }
  }
}

TEST_CASE("size: bytes, and no shares") {
  CHECK(parse_size("64GiB", "host_budget") == Bytes(64LL << 30));
  CHECK(parse_size("0", "host_budget") == Bytes(0));
  for (const auto& [text, said] :
       {std::pair("60%", "is no number of bytes; write bytes"),
        std::pair("act:5%", "is no number of bytes; write bytes"),
        std::pair("-1", "is negative; write bytes"),
        std::pair("", "is not a number with a unit; write bytes"),
        std::pair("99999999TiB", "larger than any memory; write bytes"),
        std::pair("6 GX", "the unit \"gx\" is not known; write bytes"),
        std::pair("0.5", "is no number of bytes (did you mean 50%?);")}) {
    CAPTURE(text);
    try {
      parse_size(text, "host_budget");
      FAIL("taken for a size");
    } catch (const InputError& error) {
      CHECK(error.place() == "host_budget \"" + std::string(text) + "\"");
      CHECK_MESSAGE(error.reason().find(said) != std::string::npos, error.reason());
    }
  }
}

}  // namespace lowtide
