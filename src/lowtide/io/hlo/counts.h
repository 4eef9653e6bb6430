// Sums and products of counts; OverflowError beyond 63 bits. Private to the room.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "lowtide/base/units.h"

namespace lowtide::io::hlo {

inline std::int64_t sum(std::int64_t a, std::int64_t b) {
  return checked_add(Ticks(a), Ticks(b)).count();
}

// The same, but at most INT64_MAX; neither is negative.
inline std::int64_t capped_sum(std::int64_t a, std::int64_t b) {
  return a > INT64_MAX - b ? INT64_MAX : a + b;
}

inline std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t all = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(all, factor, &all)) detail::throw_overflow();
  return all;
}

}  // namespace lowtide::io::hlo
