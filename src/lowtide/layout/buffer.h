// A buffer: bytes that are needed from one moment to another, and must lie in one piece.
#pragma once

#include <cstdint>

#include "lowtide/base/units.h"

namespace lowtide::layout {

// Moments are integers that only compare. Two buffers overlap in time if both are live at a moment:
// [0, 3) and [3, 5) are not.
struct Buffer {
  std::int64_t begin = 0, end = 0;  // live at begin, ..., end - 1
  Bytes bytes;
  bool operator==(const Buffer&) const = default;
};

}  // namespace lowtide::layout
