// Numbers with a unit, as people write them: "12.5 GB/s", "66.6%".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

struct UnitFactor {
  std::string_view text;  // in lower case
  std::int64_t factor;    // of the smallest unit
};
inline constexpr std::array<UnitFactor, 9> kByteUnits = {{{"b", 1},
                                                          {"kb", 1000},
                                                          {"mb", 1000000},
                                                          {"gb", 1000000000},
                                                          {"tb", 1000000000000},
                                                          {"kib", 1LL << 10},
                                                          {"mib", 1LL << 20},
                                                          {"gib", 1LL << 30},
                                                          {"tib", 1LL << 40}}};

// The text in lower case, without white space.
std::string without_spaces(std::string_view text);

// A decimal number, kept exactly as the fraction digits / scale, and the text after it.
struct Decimal {
  std::int64_t digits = 0, scale = 1;  // scale: a power of ten
  std::size_t count = 0;               // number of digits; 0: the text begins with no number
  bool point = false;                  // the text had a decimal point
  bool too_long = false;  // digits or scale do not fit; the text after the number is not read
  std::string suffix;
};
// `text`: as without_spaces returns it.
Decimal read_decimal(std::string_view text);

}  // namespace lowtide
