// A snapshot of a CUDA allocator: what torch.cuda.memory._snapshot() returns, as far as it bears on
// memory. io/snapshot_pickle.h reads and writes it; plan_snapshot.h makes one of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/base/units.h"

namespace lowtide::layout {

struct StackFrame {
  std::string name, filename;
  std::int64_t line = 0;
  bool operator==(const StackFrame&) const = default;
};

using Stack = std::vector<StackFrame>;  // the innermost frame first

struct SnapshotEvent {
  enum class Kind : std::uint8_t {
    allocate,
    free_requested,  // the program gives the block back
    free_completed,  // the block can be used again: no other stream works with it
    segment_allocate,
    segment_free,
    segment_map,  // pages of an expandable segment
    segment_unmap,
    other,  // out of memory, a snapshot taken: nothing moves
  };
  Kind kind = Kind::other;
  std::int64_t address = 0;
  Bytes bytes;  // as requested
  std::int64_t stream = 0;
  std::int64_t microseconds = 0;
  std::size_t stack = 0;  // an index of Snapshot::stacks
  bool operator==(const SnapshotEvent&) const = default;
};

struct SnapshotBlock {
  enum class State : std::uint8_t { allocated, awaiting_free, inactive };
  std::int64_t address = 0;
  Bytes bytes, requested;
  State state = State::inactive;
  std::size_t stack = 0;
  bool operator==(const SnapshotBlock&) const = default;
};

struct SnapshotSegment {
  std::int64_t device = 0;
  std::int64_t address = 0;
  Bytes bytes;
  std::int64_t stream = 0;
  bool is_expandable = false;
  std::vector<SnapshotBlock> blocks;  // ascending; they tile the segment
  bool operator==(const SnapshotSegment&) const = default;
};

struct Snapshot {
  std::vector<Stack> stacks = {{}};  // different ones; the first is empty
  std::vector<SnapshotSegment> segments;
  std::vector<std::vector<SnapshotEvent>> traces;  // of each device, in the order of time
  std::string allocator;                           // the settings string; empty: the defaults
};

}  // namespace lowtide::layout
