// What a recorded job would reserve under other settings of its allocator, and at planned offsets.
#pragma once

#include <string>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/layout/footprint.h"
#include "lowtide/layout/snapshot_peak.h"

namespace lowtide::layout {

struct SnapshotSavings {
  std::string settings;          // those of the job, as far as they are modelled
  std::string settings_refused;  // why its own string was not taken; empty: it was
  // The record replayed from an empty cache: what is there at its start is allocated first, by
  // address. So it may differ from what the job had reserved itself.
  Bytes reserved;
  std::vector<OtherSettings> others;  // all that were tried, the least reserved first
  // One arena for each stream: the sum of their heights, and of their loads, below which none gets.
  Bytes arenas, loads;
};

// Deterministic for a limit of work. Throws OverflowError for sums of 2^63 bytes and more.
SnapshotSavings savings_of(const Snapshot& snapshot, const Record& record, Limits& limits);

}  // namespace lowtide::layout
