// Arithmetic that cannot be in the header: 128-bit products, and the code that throws.
#include "lowtide/base/units.h"

namespace lowtide {

namespace detail {
void throw_overflow() { throw OverflowError("a sum of bytes or ticks does not fit into 63 bits"); }
}  // namespace detail

std::int64_t checked_mul_div(std::int64_t value, std::int64_t numerator, std::int64_t denominator,
                             Rounding rounding) {
  __extension__ using Wide = __int128;
  const Wide product = static_cast<Wide>(value) * numerator;
  Wide result = product / denominator;
  if (rounding == Rounding::ceil && product % denominator != 0) ++result;
  if (result > INT64_MAX) detail::throw_overflow();
  return static_cast<std::int64_t>(result);
}

}  // namespace lowtide
