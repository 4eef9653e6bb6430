#include "lowtide/layout/snapshot_peak.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/layout/allocator/sizes.h"

namespace lowtide::layout {

namespace {

using Action = SnapshotEvent::Kind;

// Of all allocations together. Whatever the replays and placements round up, their sums fit.
constexpr Bytes kMostBytes{std::int64_t{1} << 62};

// What is there at one moment, walking back from the end of the record.
struct Held {
  std::map<std::int64_t, RecordedBlock> blocks;  // by address
  Bytes reserved;
};

Held end_of(const Snapshot& snapshot, std::size_t device) {
  Held end;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != static_cast<std::int64_t>(device)) continue;
    end.reserved = checked_add(end.reserved, segment.bytes);
    for (const SnapshotBlock& block : segment.blocks)
      if (block.state != SnapshotBlock::State::inactive)
        end.blocks[block.address] = {
            .bytes = block.requested > Bytes(0) ? block.requested : block.bytes,
            .stream = segment.stream,
            .stack = block.stack};
  }
  return end;
}

// A record that contradicts itself may free more segments than there are.
void lower(Bytes& bytes, Bytes by) { bytes = std::max(bytes - by, Bytes(0)); }

void undo(const SnapshotEvent& event, Held& state) {
  switch (event.kind) {
    case Action::allocate: state.blocks.erase(event.address); break;
    case Action::free_requested:
    case Action::free_completed:
      state.blocks[event.address] = {
          .bytes = event.bytes, .stream = event.stream, .stack = event.stack};
      break;
    case Action::segment_allocate:
    case Action::segment_map: lower(state.reserved, event.bytes); break;
    case Action::segment_free:
    case Action::segment_unmap: state.reserved = checked_add(state.reserved, event.bytes); break;
    case Action::other: break;
  }
}

class Recorder {
 public:
  Recorder(const Held& start, std::int64_t events) : reserved_(start.reserved) {
    found_.events = events;
    found_.reserved_peak = reserved_;
    for (const auto& [address, held] : start.blocks) {
      RecordedBlock block = held;
      block.begin = RecordedBlock::kBeforeRecord;
      add(address, block);
    }
  }

  void run(const SnapshotEvent& event, std::int64_t now) {
    switch (event.kind) {
      case Action::allocate:
        if (live_.contains(event.address)) {
          ++found_.contradictions;
          close(event.address, now);
        }
        add(event.address,
            {.begin = now, .bytes = event.bytes, .stream = event.stream, .stack = event.stack});
        break;
      case Action::free_requested:
        if (const auto at = live_.find(event.address); at != live_.end())
          found_.blocks[at->second].freed = now;
        else
          ++found_.contradictions;
        break;
      case Action::free_completed:
        if (live_.contains(event.address))
          close(event.address, now);
        else
          ++found_.contradictions;
        break;
      case Action::segment_allocate:
      case Action::segment_map:
        reserved_ = checked_add(reserved_, event.bytes);
        found_.reserved_peak = std::max(found_.reserved_peak, reserved_);
        break;
      case Action::segment_free:
      case Action::segment_unmap: lower(reserved_, event.bytes); break;
      case Action::other: break;
    }
  }

  Record finish() && {
    Bytes all;
    for (const RecordedBlock& block : found_.blocks) all = checked_add(all, recorded_size(block));
    if (all > kMostBytes) throw InputError("", "the allocations of the record exceed 2^62 bytes");
    return std::move(found_);
  }

 private:
  void add(std::int64_t address, RecordedBlock block) {
    block.freed = block.end = found_.events + 1;
    live_[address] = found_.blocks.size();
    found_.blocks.push_back(block);
  }
  void close(std::int64_t address, std::int64_t now) {
    const auto at = live_.find(address);
    RecordedBlock& block = found_.blocks[at->second];
    block.end = now;
    block.freed = std::min(block.freed, now);
    live_.erase(at);
  }

  Bytes reserved_;
  std::unordered_map<std::int64_t, std::size_t> live_;  // blocks by address
  Record found_;
};

// PyTorch's own frames, of Python and of C++: they say how it was allocated, not by whom.
bool is_inside_pytorch(const StackFrame& frame) {
  constexpr std::array<std::string_view, 6> kEndings = {".cpp", ".cc", ".c", ".h", ".cu", ".so"};
  const std::string_view file = frame.filename;
  if (file.empty() || file.starts_with("??")) return true;
  if (file.find("-packages/torch/") != std::string_view::npos || file.starts_with("torch/"))
    return true;
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return file.ends_with(end); });
}

Stack owner_frames(const Stack& stack) {
  Stack frames;
  for (const StackFrame& frame : stack)
    if (frames.size() < PeakOwner::kOwnerFrames && !is_inside_pytorch(frame))
      frames.push_back(frame);
  if (frames.empty() && !stack.empty()) frames.push_back(stack.front());
  return frames;
}

std::string key_of(const Stack& frames) {
  std::string key;
  for (const StackFrame& frame : frames)
    key += frame.name + '\0' + frame.filename + '\0' + std::to_string(frame.line) + '\0';
  return key;
}

}  // namespace

std::vector<std::size_t> recorded_devices(const Snapshot& snapshot) {
  std::set<std::size_t> devices;
  for (const SnapshotSegment& segment : snapshot.segments)
    if (segment.device >= 0) devices.insert(static_cast<std::size_t>(segment.device));
  for (std::size_t i = 0; i < snapshot.traces.size(); ++i)
    if (!snapshot.traces[i].empty()) devices.insert(i);
  return {devices.begin(), devices.end()};
}

Record record_of(const Snapshot& snapshot, std::size_t device) {
  const std::vector<SnapshotEvent> none;
  const auto& events = device < snapshot.traces.size() ? snapshot.traces[device] : none;
  Held start = end_of(snapshot, device);
  for (std::size_t i = events.size(); i-- > 0;) undo(events[i], start);
  Recorder recorder(start, static_cast<std::int64_t>(events.size()));
  for (std::size_t i = 0; i < events.size(); ++i)
    recorder.run(events[i], static_cast<std::int64_t>(i));
  return std::move(recorder).finish();
}

Bytes recorded_size(const RecordedBlock& block) {
  return std::max(block_size(std::max(block.bytes, Bytes(1)), AllocatorSettings()), kSmallestBlock);
}

std::vector<Bytes> allocated_after(const Record& record) {
  const auto slot = [](std::int64_t event) { return static_cast<std::size_t>(event + 1); };
  std::vector<Bytes> allocated(slot(record.events));
  for (const RecordedBlock& block : record.blocks) {
    allocated[slot(block.begin)] += recorded_size(block);
    if (block.freed < record.events) allocated[slot(block.freed)] -= recorded_size(block);
  }
  for (std::size_t i = 1; i < allocated.size(); ++i) allocated[i] += allocated[i - 1];
  return allocated;
}

RecordedPeak peak_of(const Snapshot& snapshot, const Record& record) {
  const std::vector<Bytes> allocated = allocated_after(record);
  const auto most = std::ranges::max_element(allocated);
  RecordedPeak peak;
  peak.allocated = *most;
  peak.event = most - allocated.begin() - 1;

  std::vector<std::size_t> owner_of(snapshot.stacks.size(), SIZE_MAX);
  std::unordered_map<std::string, std::size_t> owners;
  for (const RecordedBlock& block : record.blocks) {
    if (block.begin > peak.event || block.freed <= peak.event) continue;
    const Bytes bytes = recorded_size(block);
    const bool is_freed = block.freed < record.events;
    (block.is_from_start() ? is_freed ? peak.from_start : peak.throughout
     : is_freed            ? peak.passing
                           : peak.to_end) += bytes;
    peak.requested += block.bytes;
    std::size_t& owner = owner_of[block.stack];
    if (owner == SIZE_MAX) {
      Stack frames = owner_frames(snapshot.stacks[block.stack]);
      const auto [at, is_new] = owners.try_emplace(key_of(frames), peak.owners.size());
      if (is_new) peak.owners.push_back({.frames = std::move(frames), .bytes = {}});
      owner = at->second;
    }
    peak.owners[owner].bytes += bytes;
    ++peak.owners[owner].blocks;
  }
  std::ranges::stable_sort(peak.owners, std::greater(), &PeakOwner::bytes);
  return peak;
}

}  // namespace lowtide::layout
