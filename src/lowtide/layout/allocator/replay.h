// A trace under the model of the caching allocator.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/layout/allocator/figures.h"
#include "lowtide/layout/allocator/settings.h"
#include "lowtide/layout/allocator/trace.h"

namespace lowtide::layout {

// The most bytes at any moment.
struct Peaks {
  Bytes allocated, active, requested, reserved, inactive_split;
  bool operator==(const Peaks&) const = default;
};

struct OutOfMemory {
  std::size_t event;  // an index: an allocation that even memory that was cached did not serve
  Bytes requested, allocated, reserved;  // at that moment
};

struct Replay {
  Peaks peaks;  // of all steps
  std::vector<Peaks>
      steps;            // of each step; what is behind the last end_step is one more, if anything
  AllocatorLevels end;  // how it ends
  AllocatorCounts counts;
  std::optional<OutOfMemory> out_of_memory;  // which ends the replay
};

// After each event, where a caller wants to see them.
struct ReplayedEvent {
  std::int64_t address = -1;  // of an allocation
  Bytes allocated, reserved;
};

// `memory`: what the device has for the allocator; absent: without a limit. Throws InputError, with
// the number of the event, for a free of what is not allocated, an id that is taken, or bytes that
// are not above 0.
Replay replay(std::span<const TraceEvent> trace, const AllocatorSettings& settings,
              std::optional<Bytes> memory = {}, std::vector<ReplayedEvent>* events = nullptr);

}  // namespace lowtide::layout
