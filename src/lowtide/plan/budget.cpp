// Shares are kept as fractions: "66.6%" is 666/1000 and nothing near it.
#include "lowtide/plan/budget.h"

#include <array>
#include <cstdio>
#include <string>

#include "lowtide/base/decimal.h"
#include "lowtide/base/error.h"

namespace lowtide {

namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& reason) {
  throw InputError("budget \"" + std::string(text) + "\"",
                   reason +
                       "; write bytes (8GiB, 512MB, 1000000), a share of the graph's peak "
                       "(80%) or of its activations (act:50%)");
}

// A share written as a fraction of one, as it should be written.
std::string as_percent(std::int64_t digits, std::int64_t scale) {
  std::array<char, 32> text{};
  const double percent = 100 * static_cast<double>(digits) / static_cast<double>(scale);
  std::snprintf(text.data(), text.size(), "%g%%", percent);
  return text.data();
}

}  // namespace

BudgetSpec parse_budget(std::string_view text) {
  std::string rest = without_spaces(text);
  const bool activations = rest.starts_with("act:");
  if (activations) rest.erase(0, 4);

  const Decimal number = read_decimal(rest);
  if (number.too_long) refuse(text, "too large, or too many digits");
  if (number.count == 0)
    refuse(text, rest.starts_with("-") ? "is negative" : "is not a number with a unit");
  const std::int64_t digits = number.digits, scale = number.scale;
  const std::string& suffix = number.suffix;

  BudgetSpec spec;
  if (suffix == "%") {
    spec.kind =
        activations ? BudgetSpec::Kind::share_of_activations : BudgetSpec::Kind::share_of_peak;
    spec.numerator = digits;
    if (__builtin_mul_overflow(scale, std::int64_t{100}, &spec.denominator))
      refuse(text, "too many digits");
    return spec;
  }
  const bool fraction = suffix.empty() && number.point && digits > 0 && digits <= scale;
  const std::string hint = fraction ? " (did you mean " + std::string(activations ? "act:" : "") +
                                          as_percent(digits, scale) + "?)"
                                    : "";
  if (activations) refuse(text, "\"act:\" takes a share in per cent" + hint);
  if (fraction) refuse(text, "is no number of bytes" + hint);
  std::int64_t factor = suffix.empty() || suffix == "bytes" ? 1 : 0;
  for (const UnitFactor& known : kByteUnits)
    if (suffix == known.text) factor = known.factor;
  if (factor == 0) refuse(text, "the unit \"" + suffix + "\" is not known");
  try {
    spec.bytes = Bytes(checked_mul_div(digits, factor, scale, Rounding::floor));
  } catch (const OverflowError&) {
    refuse(text, "is larger than any memory");
  }
  return spec;
}

Bytes parse_size(std::string_view text, std::string_view what) {
  BudgetSpec size;
  std::string why = "is no number of bytes";
  try {
    size = parse_budget(text);
    if (size.kind == BudgetSpec::Kind::bytes) return size.bytes;
  } catch (const InputError& error) {
    why = error.reason().substr(0, error.reason().find(';'));
  }
  throw InputError(std::string(what) + " \"" + std::string(text) + "\"",
                   why + "; write bytes (64GiB, 512MB, 1000000)");
}

Share parse_percentage(std::string_view text, std::string_view what) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(std::string(what) + " \"" + std::string(text) + "\"",
                     why + "; write a percentage of 0 or more (5%, 0.5%)");
  };
  BudgetSpec share;
  try {
    share = parse_budget(std::string(text) + (text.ends_with('%') ? "" : "%"));
  } catch (const InputError&) {
    refuse(text.starts_with('-') ? "is negative" : "is not a percentage");
  }
  if (share.kind != BudgetSpec::Kind::share_of_peak) refuse("is not a percentage");
  const bool fraction = share.numerator > 0 && share.numerator < share.denominator / 100;
  if (!text.ends_with('%') && fraction)
    refuse("has no % (did you mean " + as_percent(100 * share.numerator, share.denominator) + "?)");
  return {share.numerator, share.denominator};
}

Ticks overhead_limit(std::string_view overhead, Ticks base) {
  const Share share = parse_percentage(overhead, "overhead");
  try {
    return checked_add(base, Ticks(checked_mul_div(base.count(), share.numerator, share.denominator,
                                                   Rounding::floor)));
  } catch (const OverflowError&) {
    return Ticks::max();
  }
}

}  // namespace lowtide
