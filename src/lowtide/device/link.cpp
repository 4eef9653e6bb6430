// A rate and a latency, each a decimal number with a unit.
#include "lowtide/device/link.h"

#include <array>
#include <span>
#include <string>

#include "lowtide/base/decimal.h"
#include "lowtide/base/error.h"
#include "lowtide/base/units.h"

namespace lowtide {

namespace {

constexpr std::array<UnitFactor, 4> kTimes = {
    {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}}};

class LinkText {
 public:
  explicit LinkText(std::string_view text) : given_(text), rest_(without_spaces(text)) {}

  LinkSpeed read() {
    const auto comma = rest_.find(',');
    const std::string rate = rest_.substr(0, comma);
    const auto latency = comma == std::string::npos ? std::string() : rest_.substr(comma + 1);
    LinkSpeed link;
    link.bytes_per_second = count(rate, kByteUnits, "/s", "bytes a second", false);
    if (link.bytes_per_second == 0) refuse("moves less than one byte a second");
    if (comma == std::string::npos) return link;
    if (latency.empty())
      refuse("has nothing after the comma; leave the comma out, or add a latency");
    link.latency_ns = count(latency, kTimes, "", "a latency", true);
    return link;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw InputError("link \"" + std::string(given_) + "\"",
                     reason +
                         "; write bytes a second and the latency of a transfer (25GB/s,10us), or "
                         "bytes a second alone (12.5GB/s)");
  }

  // The number with one of the units, `per` behind it, in the smallest of them.
  std::int64_t count(const std::string& text, std::span<const UnitFactor> units,
                     std::string_view per, const std::string& what, bool round_up) const {
    const Decimal number = read_decimal(text);
    if (number.too_long) refuse("has " + what + " of too many digits");
    if (number.count == 0)
      refuse(text.starts_with("-") ? "has " + what + " that is negative: \"" + text + "\""
                                   : "does not say " + what + " with a unit");
    for (const UnitFactor& unit : units) {
      if (number.suffix != std::string(unit.text).append(per)) continue;
      try {
        const auto whole = [&](Rounding rounding) {
          return checked_mul_div(number.digits, unit.factor, number.scale, rounding);
        };
        if (!round_up && whole(Rounding::ceil) != whole(Rounding::floor))
          refuse("is no whole number of bytes a second");
        return whole(Rounding::ceil);
      } catch (const OverflowError&) {
        refuse("has " + what + " beyond 63 bits");
      }
    }
    if (number.suffix.empty()) refuse("does not say the unit of \"" + text + "\"");
    refuse("has " + what + " in the unit \"" + number.suffix + "\", which is not known");
  }

  std::string_view given_;
  std::string rest_;
};

}  // namespace

LinkSpeed parse_link(std::string_view text) { return LinkText(text).read(); }

}  // namespace lowtide
