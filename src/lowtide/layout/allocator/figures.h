// What the caching allocator counts, with PyTorch's meaning of each word (torch.cuda.memory_stats).
#pragma once

#include <algorithm>
#include <cstdint>

#include "lowtide/base/units.h"

namespace lowtide::layout {

struct Level {
  Bytes now, peak;

  void add(Bytes bytes) {
    now += bytes;
    peak = std::max(peak, now);
  }
  void subtract(Bytes bytes) { now -= bytes; }
  void reset_peak() { peak = now; }
};

struct AllocatorLevels {
  Level allocated;  // blocks that are held
  Level active;     // those, and freed ones that other streams may still use
  Level requested;  // what was asked for, of the active ones
  Level reserved;   // taken from the device
  Level
      inactive_split;  // free parts of segments that are not free as a whole, expandable ones aside

  void reset_peaks() {
    for (Level* level : {&allocated, &active, &requested, &reserved, &inactive_split})
      level->reset_peak();
  }
};

// How often each rule of the allocator was at work.
struct AllocatorCounts {
  std::int64_t allocations = 0;
  std::int64_t splits = 0, merges = 0;
  std::int64_t device_allocations = 0, device_frees = 0;  // segments, and ranges of pages
  std::int64_t retries = 0;         // cached memory was given back before another attempt
  std::int64_t unmaps = 0;          // ranges of pages of expandable segments that were given back
  std::int64_t collected = 0;       // segments that garbage collection gave back
  std::int64_t oversize_frees = 0;  // segments above max_split_size_mb given back for another
  std::int64_t oversize_refusals = 0;  // best fits that max_split_size_mb kept from a request
  std::int64_t waits = 0;              // frees that waited for another stream

  bool operator==(const AllocatorCounts&) const = default;
};

}  // namespace lowtide::layout
