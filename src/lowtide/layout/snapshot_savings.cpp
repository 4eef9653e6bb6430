#include "lowtide/layout/snapshot_savings.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lowtide/base/error.h"
#include "lowtide/layout/allocator/sizes.h"
#include "lowtide/layout/place.h"

namespace lowtide::layout {

namespace {

// The device's memory is not in a snapshot, so no setting counts that limits a share of it.
AllocatorSettings without_limits(AllocatorSettings settings) {
  settings.garbage_collection_threshold = 0;
  settings.memory_fraction = 1;
  return settings;
}

// Streams by their numbers among those that occur: a job's own are addresses.
std::map<std::int64_t, Stream> numbered_streams(const Record& record) {
  std::map<std::int64_t, Stream> streams;
  for (const RecordedBlock& block : record.blocks) streams[block.stream] = 0;
  Stream next = 0;
  for (auto& [stream, number] : streams) number = next++;
  return streams;
}

Trace allocations_of(const Record& record, const std::map<std::int64_t, Stream>& streams) {
  struct Moment {
    std::int64_t event;
    bool allocates;  // a free at the same event comes first
    std::size_t block;
  };
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < record.blocks.size(); ++i) {
    moments.push_back({record.blocks[i].begin, true, i});
    if (record.blocks[i].end < record.events) moments.push_back({record.blocks[i].end, false, i});
  }
  std::ranges::sort(moments, {}, [](const Moment& moment) {
    return std::tuple(moment.event, moment.allocates, moment.block);
  });
  Trace trace;
  for (const Moment& moment : moments) {
    const RecordedBlock& block = record.blocks[moment.block];
    TraceEvent event{TraceEvent::Kind::free, static_cast<std::int64_t>(moment.block)};
    if (moment.allocates) {
      event.kind = TraceEvent::Kind::allocate;
      event.bytes = std::max(block.bytes, Bytes(1));
      event.stream = streams.at(block.stream);
    }
    trace.push_back(event);
  }
  return trace;
}

}  // namespace

SnapshotSavings savings_of(const Snapshot& snapshot, const Record& record, Limits& limits) {
  SnapshotSavings found;
  AllocatorSettings settings;
  try {
    settings = without_limits(parse_allocator_settings(snapshot.allocator));
  } catch (const InputError& error) {
    found.settings_refused = error.what();
  }
  found.settings = to_string(settings);
  const auto streams = numbered_streams(record);
  const Trace trace = allocations_of(record, streams);
  found.reserved = replay(trace, settings).peaks.reserved;
  for (const AllocatorSettings& other : settings_to_try(settings))
    found.others.push_back({to_string(other), replay(trace, other).peaks.reserved});
  std::ranges::stable_sort(found.others, {}, &OtherSettings::reserved);

  std::map<std::int64_t, std::vector<Buffer>> arenas;
  for (const RecordedBlock& block : record.blocks)
    arenas[block.stream].push_back({block.begin, block.end, recorded_size(block)});
  for (const auto& [stream, buffers] : arenas) {
    const Placement placed = place(buffers, {.alignment = kSmallestBlock}, limits);
    found.arenas = checked_add(found.arenas, placed.height);
    found.loads = checked_add(found.loads, placed.load);
  }
  return found;
}

}  // namespace lowtide::layout
