// Parses digit by digit, so that 12.5 is exactly 125/10.
#include "lowtide/base/decimal.h"

#include <cctype>

namespace lowtide {

std::string without_spaces(std::string_view text) {
  std::string rest;
  for (const char c : text)
    if (std::isspace(static_cast<unsigned char>(c)) == 0)
      rest += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return rest;
}

Decimal read_decimal(std::string_view text) {
  Decimal number;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !number.point) {
      number.point = true;
      continue;
    }
    if (text[at] < '0' || text[at] > '9') break;
    ++number.count;
    number.too_long =
        __builtin_mul_overflow(number.digits, std::int64_t{10}, &number.digits) ||
        __builtin_add_overflow(number.digits, std::int64_t{text[at] - '0'}, &number.digits) ||
        (number.point && __builtin_mul_overflow(number.scale, std::int64_t{10}, &number.scale));
    if (number.too_long) return number;
  }
  number.suffix = text.substr(at);
  return number;
}

}  // namespace lowtide
