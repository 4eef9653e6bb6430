// One body for each loop, compiled once for each instruction set. Eight partial sums, since the
// compiler may not re-order a sum of doubles by itself.
#include "lowtide/solve/local/common/state/kernels.h"

#include <array>
#include <limits>

namespace lowtide::solve::local {

namespace {

constexpr std::size_t kLanes = 8;

[[gnu::always_inline]] inline void add_body(double* values, std::size_t count, double delta) {
  for (std::size_t i = 0; i < count; ++i) values[i] += delta;
}

[[gnu::always_inline]] inline double max_body(const double* values, std::size_t count) {
  std::array<double, kLanes> best;
  best.fill(values[0]);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k)
      best[k] = values[i + k] > best[k] ? values[i + k] : best[k];
  for (; i < count; ++i) best[0] = values[i] > best[0] ? values[i] : best[0];
  double result = best[0];
  for (double value : best) result = value > result ? value : result;
  return result;
}

[[gnu::always_inline]] inline double least_above_body(const double* values, std::size_t count,
                                                      double floor) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::array<double, kLanes> least;
  least.fill(kNone);
  const auto lower = [&](double& best, double value) {
    const double counted = value > floor ? value : kNone;
    best = counted < best ? counted : best;
  };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) lower(least[k], values[i + k]);
  for (; i < count; ++i) lower(least[0], values[i]);
  double result = kNone;
  for (double value : least) result = value < result ? value : result;
  return result;
}

[[gnu::always_inline]] inline double clamped_sum_body(const double* values, std::size_t count,
                                                      double level, double cap) {
  const auto clamped = [&](double value) {
    const double above = value - level > 0 ? value - level : 0;
    return above < cap ? above : cap;
  };
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t k = 0; k < kLanes; ++k) sums[k] += clamped(values[i + k]);
  double result = 0;
  for (; i < count; ++i) result += clamped(values[i]);
  for (double sum : sums) result += sum;
  return result;
}

void add_plain(double* values, std::size_t count, double delta) { add_body(values, count, delta); }
double max_plain(const double* values, std::size_t count) { return max_body(values, count); }
double least_above_plain(const double* values, std::size_t count, double floor) {
  return least_above_body(values, count, floor);
}
double clamped_sum_plain(const double* values, std::size_t count, double level, double cap) {
  return clamped_sum_body(values, count, level, cap);
}

#if defined(__x86_64__)
#define LOWTIDE_AVX2 [[gnu::target("avx2")]]
LOWTIDE_AVX2 void add_avx2(double* values, std::size_t count, double delta) {
  add_body(values, count, delta);
}
LOWTIDE_AVX2 double max_avx2(const double* values, std::size_t count) {
  return max_body(values, count);
}
LOWTIDE_AVX2 double least_above_avx2(const double* values, std::size_t count, double floor) {
  return least_above_body(values, count, floor);
}
LOWTIDE_AVX2 double clamped_sum_avx2(const double* values, std::size_t count, double level,
                                     double cap) {
  return clamped_sum_body(values, count, level, cap);
}
#undef LOWTIDE_AVX2
#endif

Kernels choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    return {add_avx2, max_avx2, least_above_avx2, clamped_sum_avx2};
#endif
  return {add_plain, max_plain, least_above_plain, clamped_sum_plain};
}

}  // namespace

const Kernels& kernels() {
  static const Kernels chosen = choose();
  return chosen;
}

}  // namespace lowtide::solve::local
