// How much of the random sweeps a run takes: LOWTIDE_TEST_SCALE, 1 unless set; the long run has
// 100.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace lowtide {

inline int test_scale() {
  const char* text = std::getenv("LOWTIDE_TEST_SCALE");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

}  // namespace lowtide
