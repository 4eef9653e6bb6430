#include <algorithm>
#include <optional>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/io/pickle_write.h"
#include "lowtide/io/snapshot_names.h"
#include "lowtide/io/snapshot_pickle.h"

namespace lowtide::io {

namespace {

using layout::SnapshotBlock;
using layout::SnapshotEvent;
using layout::SnapshotSegment;

// By which viewers colour segments: those that hold blocks of up to 1 MiB have 2 MiB.
constexpr Bytes kSmallSegment{2 << 20};

class SnapshotWriter {
 public:
  explicit SnapshotWriter(const layout::Snapshot& snapshot)
      : snapshot_(snapshot), written_(snapshot.stacks.size()) {}

  std::string write() && {
    out_.dict([&] {
      out_.text("segments");
      out_.list(snapshot_.segments.size(),
                [&](std::size_t i) { write_segment(snapshot_.segments[i]); });
      out_.text("device_traces");
      out_.list(snapshot_.traces.size(), [&](std::size_t device) {
        const auto& events = snapshot_.traces[device];
        out_.list(events.size(), [&](std::size_t i) { write_event(events[i]); });
      });
      out_.text("allocator_settings");
      out_.dict([&] { text(kAllocatorSettings, snapshot_.allocator); });
      out_.text("external_annotations");
      out_.list(0, [](std::size_t) {});
    });
    return std::move(out_).finish();
  }

 private:
  void integer(std::string_view key, std::int64_t value) {
    out_.text(key);
    out_.integer(value);
  }
  void text(std::string_view key, std::string_view value) {
    out_.text(key);
    out_.text(value);
  }
  void frames(std::size_t index) {
    out_.text("frames");
    if (written_[index]) return out_.recall(*written_[index]);
    const layout::Stack& stack = snapshot_.stacks[index];
    out_.list(stack.size(), [&](std::size_t i) {
      out_.dict([&] {
        text("name", stack[i].name);
        text("filename", stack[i].filename);
        integer("line", stack[i].line);
      });
    });
    written_[index] = out_.remember();
  }

  void write_event(const SnapshotEvent& event) {
    const auto action = std::ranges::find(kSnapshotActions, event.kind,
                                          [](const auto& pair) { return pair.second; });
    out_.dict([&] {
      text("action", action == kSnapshotActions.end() ? "snapshot" : action->first);
      integer("addr", event.address);
      integer("size", event.bytes.count());
      integer("stream", event.stream);
      integer("time_us", event.microseconds);
      frames(event.stack);
    });
  }

  void write_segment(const SnapshotSegment& segment) {
    Bytes allocated, active, requested;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == SnapshotBlock::State::inactive) continue;
      active += block.bytes;
      requested += block.requested;
      if (block.state == SnapshotBlock::State::allocated) allocated += block.bytes;
    }
    out_.dict([&] {
      integer("device", segment.device);
      integer("address", segment.address);
      integer("total_size", segment.bytes.count());
      integer("allocated_size", allocated.count());
      integer("active_size", active.count());
      integer("requested_size", requested.count());
      integer("stream", segment.stream);
      text("segment_type", segment.bytes <= kSmallSegment ? "small" : "large");
      out_.text("segment_pool_id");
      out_.pair([&] { out_.integer(0), out_.integer(0); });
      out_.text("is_expandable");
      out_.boolean(segment.is_expandable);
      frames(0);
      out_.text("blocks");
      out_.list(segment.blocks.size(), [&](std::size_t i) { write_block(segment.blocks[i]); });
    });
  }

  void write_block(const SnapshotBlock& block) {
    const auto state = std::ranges::find(kSnapshotStates, block.state,
                                         [](const auto& pair) { return pair.second; });
    out_.dict([&] {
      integer("address", block.address);
      integer("size", block.bytes.count());
      integer("requested_size", block.requested.count());
      text("state", state->first);
      frames(block.stack);
    });
  }

  const layout::Snapshot& snapshot_;
  std::vector<std::optional<std::uint32_t>> written_;  // where each stack is remembered
  PickleWriter out_;
};

}  // namespace

std::string write_snapshot(const layout::Snapshot& snapshot) {
  return SnapshotWriter(snapshot).write();
}

}  // namespace lowtide::io
