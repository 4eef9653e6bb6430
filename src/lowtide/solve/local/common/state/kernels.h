// The inner loops of the search, in the widest vectors of the processor. Values are integers below
// 2^53 in doubles: exact, and every vector unit has their maximum, unlike that of 64-bit integers.
#pragma once

#include <cstddef>

namespace lowtide::solve::local {

struct Kernels {
  // values[i] += delta.
  void (*add)(double* values, std::size_t count, double delta);
  // The maximum; count > 0.
  double (*max)(const double* values, std::size_t count);
  // The minimum of the values above `floor`; infinity if there are none.
  double (*least_above)(const double* values, std::size_t count, double floor);
  // Sum of min(max(values[i] - level, 0), cap); cap >= 0.
  double (*clamped_sum)(const double* values, std::size_t count, double level, double cap);
};

// Selected once, by the processor.
const Kernels& kernels();

}  // namespace lowtide::solve::local
