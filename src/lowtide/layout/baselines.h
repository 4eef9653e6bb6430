// What others do, for tables beside `place`. Quadratic in the number of buffers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "lowtide/base/units.h"
#include "lowtide/layout/buffer.h"

namespace lowtide::layout {

enum class Baseline : std::uint8_t {
  // The largest first, each into the smallest gap that it fits in: TensorFlow Lite Micro's greedy
  // planner.
  by_size,
  // The same, the longest-lived first, then the largest: the heap of XLA.
  by_duration,
  // The largest first, each into the smallest object that is free while it lives and not smaller:
  // TensorFlow Lite's and ExecuTorch's older planners. Objects do not share bytes.
  shared_objects,
};
inline constexpr std::array kBaselines = {Baseline::by_size, Baseline::by_duration,
                                          Baseline::shared_objects};
std::string_view to_string(Baseline baseline);

// The height that it comes to. Buffers and alignment as `place` takes them.
Bytes baseline_height(Baseline baseline, std::span<const Buffer> buffers, Bytes alignment);

}  // namespace lowtide::layout
