// Strong units: bytes of memory and ticks of time do not mix. Both are 64-bit integers; sums that
// may leave that range go through `checked_add` and `checked_mul_div`, which throw OverflowError.
#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>

namespace lowtide {

class OverflowError : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

template <class Tag>
class Unit {
 public:
  constexpr Unit() = default;
  constexpr explicit Unit(std::int64_t value) : value_(value) {}

  constexpr std::int64_t count() const { return value_; }
  constexpr auto operator<=>(const Unit&) const = default;

  // Unchecked, for sums that are bounded by a sum that was checked when the graph was built.
  constexpr Unit operator+(Unit other) const { return Unit(value_ + other.value_); }
  constexpr Unit operator-(Unit other) const { return Unit(value_ - other.value_); }
  constexpr Unit& operator+=(Unit other) { return *this = *this + other; }
  constexpr Unit& operator-=(Unit other) { return *this = *this - other; }

  static constexpr Unit max() { return Unit(INT64_MAX); }

 private:
  std::int64_t value_ = 0;
};

using Bytes = Unit<struct BytesTag>;
using Ticks = Unit<struct TicksTag>;

namespace detail {
[[noreturn]] void throw_overflow();
}

template <class Tag>
constexpr Unit<Tag> checked_add(Unit<Tag> a, Unit<Tag> b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a.count(), b.count(), &sum)) detail::throw_overflow();
  return Unit<Tag>(sum);
}

// An exact fraction.
struct Share {
  std::int64_t numerator = 0, denominator = 1;  // numerator >= 0, denominator > 0
};

enum class Rounding { floor, ceil };

// value * numerator / denominator without intermediate overflow; all non-negative, denominator > 0.
// Throws OverflowError if the result does not fit.
std::int64_t checked_mul_div(std::int64_t value, std::int64_t numerator, std::int64_t denominator,
                             Rounding rounding);

}  // namespace lowtide
