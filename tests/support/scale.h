// How much of the random sweeps a run takes: LOWTIDE_TEST_SCALE times the default sample, 1 unless
// set; the long run has 100.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace lowtide {

inline int test_scale() {
  const char* text = std::getenv("LOWTIDE_TEST_SCALE");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// A limit of work: sanitizers look for faults of memory and races, which come as soon in less of
// it; what the code answers is proven without them.
constexpr std::int64_t sanitized(std::int64_t less, std::int64_t usual) {
  return kSanitized ? less : usual;
}

// That many times the scale. Where a sanitizer makes everything slow, a quarter of them in the long
// run and a tenth in the quick one: it has to see each path, not many samples.
inline int samples(int usual) {
  const bool quick = test_scale() == 1;
  if (kSanitized) usual = quick ? (usual + 9) / 10 : (usual + 3) / 4;
  return usual * test_scale();
}

// The same where fewer are enough for the quick run.
inline int samples(int quick, int usual) {
  return test_scale() == 1 && !kSanitized ? quick : samples(usual);
}

}  // namespace lowtide
