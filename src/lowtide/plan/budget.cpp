// Decimal numbers are read exactly, as a fraction: "66.6%" is 666/1000 and nothing near it.
#include "lowtide/plan/budget.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <string>

#include "lowtide/base/error.h"

namespace lowtide {

namespace {

struct Suffix {
  std::string_view text;
  std::int64_t factor;
};
constexpr std::array<Suffix, 11> kSuffixes = {{{"", 1},
                                               {"b", 1},
                                               {"kb", 1000},
                                               {"mb", 1000000},
                                               {"gb", 1000000000},
                                               {"tb", 1000000000000},
                                               {"kib", 1LL << 10},
                                               {"mib", 1LL << 20},
                                               {"gib", 1LL << 30},
                                               {"tib", 1LL << 40},
                                               {"bytes", 1}}};

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

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

BudgetSpec parse_budget(std::string_view text) {
  std::string rest;
  for (char c : text)
    if (std::isspace(static_cast<unsigned char>(c)) == 0)
      rest += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool activations = rest.starts_with("act:");
  if (activations) rest.erase(0, 4);

  std::int64_t digits = 0, scale = 1;
  std::size_t at = 0, count = 0;
  bool point = false;
  for (; at < rest.size() && (is_digit(rest[at]) || (rest[at] == '.' && !point)); ++at) {
    if (rest[at] == '.') {
      point = true;
      continue;
    }
    ++count;
    if (__builtin_mul_overflow(digits, std::int64_t{10}, &digits) ||
        __builtin_add_overflow(digits, std::int64_t{rest[at] - '0'}, &digits) ||
        (point && __builtin_mul_overflow(scale, std::int64_t{10}, &scale)))
      refuse(text, "too large, or too many digits");
  }
  if (count == 0)
    refuse(text, rest.starts_with("-") ? "is negative" : "is not a number with a unit");
  const std::string suffix = rest.substr(at);

  BudgetSpec spec;
  if (suffix == "%") {
    spec.kind =
        activations ? BudgetSpec::Kind::share_of_activations : BudgetSpec::Kind::share_of_peak;
    spec.numerator = digits;
    if (__builtin_mul_overflow(scale, std::int64_t{100}, &spec.denominator))
      refuse(text, "too many digits");
    return spec;
  }
  const bool fraction = suffix.empty() && point && digits > 0 && digits <= scale;
  const std::string hint = fraction ? " (did you mean " + std::string(activations ? "act:" : "") +
                                          as_percent(digits, scale) + "?)"
                                    : "";
  if (activations) refuse(text, "\"act:\" takes a share in per cent" + hint);
  if (fraction) refuse(text, "is no number of bytes" + hint);
  for (const Suffix& known : kSuffixes) {
    if (suffix != known.text) continue;
    try {
      spec.bytes = Bytes(checked_mul_div(digits, known.factor, scale, Rounding::floor));
    } catch (const OverflowError&) {
      refuse(text, "is larger than any memory");
    }
    return spec;
  }
  refuse(text, "the unit \"" + suffix + "\" is not known");
}

Ticks overhead_limit(std::string_view overhead, const Graph& graph) {
  const auto refuse_overhead = [&](const std::string& what) {
    throw InputError("overhead \"" + std::string(overhead) + "\"",
                     what + "; write a percentage of 0 or more (5%, 0.5%)");
  };
  BudgetSpec share;
  try {
    share = parse_budget(std::string(overhead) + (overhead.ends_with('%') ? "" : "%"));
  } catch (const InputError&) {
    refuse_overhead(overhead.starts_with('-') ? "is negative" : "is not a percentage");
  }
  if (share.kind != BudgetSpec::Kind::share_of_peak) refuse_overhead("is not a percentage");
  const bool fraction = share.numerator > 0 && share.numerator < share.denominator / 100;
  if (!overhead.ends_with('%') && fraction)
    refuse_overhead("has no % (did you mean " +
                    as_percent(100 * share.numerator, share.denominator) + "?)");
  try {
    const Ticks base = graph.total_time();
    return checked_add(base, Ticks(checked_mul_div(base.count(), share.numerator, share.denominator,
                                                   Rounding::floor)));
  } catch (const OverflowError&) {
    return Ticks::max();
  }
}

}  // namespace lowtide
