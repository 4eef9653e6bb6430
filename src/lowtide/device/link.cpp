// Decimal numbers are read exactly, as a fraction: 12.5 is 125/10 and nothing near it.
#include "lowtide/device/link.h"

#include <cctype>
#include <span>
#include <string>

#include "lowtide/base/error.h"
#include "lowtide/base/units.h"

namespace lowtide {

namespace {

struct Suffix {
  std::string_view text;
  std::int64_t factor;
};
constexpr Suffix kRates[] = {{"b/s", 1},           {"kb/s", 1000},          {"mb/s", 1000000},
                             {"gb/s", 1000000000}, {"tb/s", 1000000000000}, {"kib/s", 1LL << 10},
                             {"mib/s", 1LL << 20}, {"gib/s", 1LL << 30},    {"tib/s", 1LL << 40}};
constexpr Suffix kTimes[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

class LinkText {
 public:
  explicit LinkText(std::string_view text) : given_(text) {
    for (char c : text)
      if (std::isspace(static_cast<unsigned char>(c)) == 0)
        rest_ += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }

  LinkSpeed read() {
    const auto comma = rest_.find(',');
    const std::string rate = rest_.substr(0, comma);
    const auto latency = comma == std::string::npos ? std::string() : rest_.substr(comma + 1);
    LinkSpeed link;
    link.bytes_per_second = count(rate, kRates, "bytes a second", false);
    if (link.bytes_per_second == 0) refuse("moves less than one byte a second");
    if (comma == std::string::npos) return link;
    if (latency.empty())
      refuse("has nothing after the comma; leave the comma out, or add a latency");
    link.latency_ns = count(latency, kTimes, "a latency", true);
    return link;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw InputError("link \"" + std::string(given_) + "\"",
                     reason +
                         "; write bytes a second and the latency of a transfer (25GB/s,10us), or "
                         "bytes a second alone (12.5GB/s)");
  }

  // The number with one of the units, in the smallest of them.
  std::int64_t count(const std::string& text, std::span<const Suffix> units,
                     const std::string& what, bool round_up) const {
    std::int64_t digits = 0, scale = 1;
    std::size_t at = 0, seen = 0;
    bool point = false;
    for (; at < text.size(); ++at) {
      if (text[at] == '.' && !point) {
        point = true;
        continue;
      }
      if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) break;
      ++seen;
      if (__builtin_mul_overflow(digits, std::int64_t{10}, &digits) ||
          __builtin_add_overflow(digits, std::int64_t{text[at] - '0'}, &digits) ||
          (point && __builtin_mul_overflow(scale, std::int64_t{10}, &scale)))
        refuse("has " + what + " of too many digits");
    }
    if (seen == 0)
      refuse(text.starts_with("-") ? "has " + what + " that is negative: \"" + text + "\""
                                   : "does not say " + what + " with a unit");
    const std::string suffix = text.substr(at);
    for (const Suffix& unit : units) {
      if (unit.text != suffix) continue;
      try {
        const std::int64_t whole = checked_mul_div(digits, unit.factor, scale, Rounding::ceil);
        if (!round_up && whole != checked_mul_div(digits, unit.factor, scale, Rounding::floor))
          refuse("is no whole number of bytes a second");
        return whole;
      } catch (const OverflowError&) {
        refuse("has " + what + " beyond 63 bits");
      }
    }
    if (suffix.empty()) refuse("does not say the unit of \"" + text + "\"");
    refuse("has " + what + " in the unit \"" + suffix + "\", which is not known");
  }

  std::string_view given_;
  std::string rest_;
};

}  // namespace

LinkSpeed parse_link(std::string_view text) { return LinkText(text).read(); }

}  // namespace lowtide
