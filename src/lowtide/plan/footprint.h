// What a budget limits, and what a plan takes of it where its bytes lie.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lowtide/base/ids.h"
#include "lowtide/base/units.h"

namespace lowtide {

// The bytes that a budget limits: those live; the arena that holds all tensors at planned offsets;
// or those that an allocator has reserved.
enum class Footprint : std::uint8_t { live, arena, reserved };
inline constexpr std::array kFootprints = {Footprint::live, Footprint::arena, Footprint::reserved};
std::string_view to_string(Footprint footprint);

// Where a tensor lies in the arena from one step on, or the workspace of the op that the step
// computes.
struct PlannedOffset {
  static constexpr std::int32_t kStart = -1;
  std::int32_t step = kStart;  // that begins it; kStart: it is there before the first step
  TensorId tensor;             // in the file's indices; invalid for a workspace
  Bytes offset;
  bool operator==(const PlannedOffset&) const = default;
};

// What a plan takes of what the budget limits.
struct Taken {
  Bytes bytes;                              // no less than its peak
  std::vector<PlannedOffset> offsets = {};  // by step; for `arena`
};

}  // namespace lowtide
