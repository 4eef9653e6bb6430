// The peak of a recorded job: who owns its bytes, and how much of it could be elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/layout/buffer.h"
#include "lowtide/layout/snapshot.h"

namespace lowtide::layout {

// A block over the recorded time. Moments are indices of events.
//
//   events     0 ............................. n
//   [-1, 7)    ------)          was there before the record began
//   [3, 9)        [-----)
//   [5, n + 1)      [---------------------------   still there at the end
struct RecordedBlock {
  std::int64_t begin = 0;  // its allocation; kBeforeRecord
  std::int64_t freed = 0;  // its program gave it back: its free_requested
  std::int64_t end = 0;    // it can be used again: its free_completed; n + 1 for never
  Bytes bytes;             // as requested, or as the snapshot says for a block at its end
  std::int64_t stream = 0;
  std::size_t stack = 0;  // who allocated it; of a block from before the record, who freed it

  static constexpr std::int64_t kBeforeRecord = -1;
  bool is_from_start() const { return begin == kBeforeRecord; }
};

struct Record {
  std::vector<RecordedBlock> blocks;  // by begin; those from before the record by address
  std::int64_t events = 0;
  Bytes reserved_peak;             // of all segments
  std::size_t contradictions = 0;  // events that do not fit the others, and are left out
};

// Those with events or segments, ascending.
std::vector<std::size_t> recorded_devices(const Snapshot& snapshot);

// What the events of one device come to. PyTorch keeps the last events alone: what was there before
// the first is found from the blocks and segments at the end, with every event undone. InputError
// or OverflowError for sizes that add up to more than 2^62 bytes.
Record record_of(const Snapshot& snapshot, std::size_t device);

// The blocks as the CUDA allocator rounds them: to 512 bytes.
Bytes recorded_size(const RecordedBlock& block);

// The bytes allocated before the first event, then after each, in rounded sizes.
std::vector<Bytes> allocated_after(const Record& record);

// Blocks of one place in the program: the innermost frames that are not PyTorch's own.
struct PeakOwner {
  Stack frames;  // at most kOwnerFrames; empty: nothing is known
  Bytes bytes;
  std::size_t blocks = 0;
  static constexpr std::size_t kOwnerFrames = 3;
};

struct RecordedPeak {
  std::int64_t event = RecordedBlock::kBeforeRecord;  // after which the most bytes are allocated
  Bytes allocated, requested;     // then; allocated in rounded sizes, as max_memory_allocated is
  std::vector<PeakOwner> owners;  // the most bytes first
  // The allocated bytes, in four parts. Recomputation or offload can take from the first at most:
  // a snapshot has no reads, so it cannot say how much of it.
  Bytes passing;     // allocated in the record, freed after the peak
  Bytes from_start;  // there before the record, freed after the peak
  Bytes to_end;      // allocated in the record, and still there at its end
  Bytes throughout;  // there from before the record to its end
};

RecordedPeak peak_of(const Snapshot& snapshot, const Record& record);

}  // namespace lowtide::layout
