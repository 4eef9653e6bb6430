// Perfetto's trace format: messages of protobuf, packet after packet. The numbers of fields are
// those of perfetto/trace/trace_packet.proto and the files beside it.
#include <algorithm>
#include <utility>

#include "lowtide/report/trace.h"

namespace lowtide::report {

namespace {

// A message of protobuf.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  Message& bytes(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    out_ += value;
    return *this;
  }
  Message& message(std::uint32_t field, const Message& inner) { return bytes(field, inner.out_); }
  std::string&& take() && { return std::move(out_); }

 private:
  void varint(std::uint64_t value) {
    for (; value > 0x7f; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

namespace trace_fields {
constexpr std::uint32_t kPacket = 1;
}
namespace packet_fields {
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kTrackDescriptor = 60;
}
namespace track_fields {
constexpr std::uint32_t kUuid = 1, kName = 2, kParent = 5, kCounter = 8;
}
namespace counter_fields {
constexpr std::uint32_t kUnit = 3;
constexpr std::uint64_t kSizeBytes = 3;
}  // namespace counter_fields
namespace event_fields {
constexpr std::uint32_t kAnnotation = 4, kType = 9, kTrack = 11, kCategory = 22, kName = 23,
                        kCounterValue = 30;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kCounter = 4;
}  // namespace event_fields
namespace annotation_fields {
constexpr std::uint32_t kInteger = 4, kText = 6, kName = 10;
}

constexpr std::uint64_t kRoot = 1, kLive = 2, kLanes = 3;  // uuids of tracks; lanes from kLanes on

std::uint64_t track_of(TraceLane lane) { return kLanes + static_cast<std::uint64_t>(lane); }

class PerfettoWriter {
 public:
  explicit PerfettoWriter(const Trace& trace) : trace_(trace) {}

  std::string write() && {
    track(Message().number(track_fields::kUuid, kRoot).bytes(track_fields::kName, trace_.name));
    Message unit;
    unit.number(counter_fields::kUnit, counter_fields::kSizeBytes);
    track(child(kLive, "live bytes").message(track_fields::kCounter, unit));
    for (const TraceLane lane : kTraceLanes)
      if (std::ranges::find(trace_.slices, lane, &TraceSlice::lane) != trace_.slices.end())
        track(child(track_of(lane), to_string(lane)));
    write_slices();
    for (const TraceCount& count : trace_.counter) {
      Message event;
      event.number(event_fields::kType, event_fields::kCounter)
          .number(event_fields::kTrack, kLive)
          .number(event_fields::kCounterValue, static_cast<std::uint64_t>(count.live.count()));
      packet(count.time, event);
    }
    return std::move(out_).take();
  }

 private:
  static Message child(std::uint64_t uuid, std::string_view name) {
    Message track;
    track.number(track_fields::kUuid, uuid)
        .bytes(track_fields::kName, name)
        .number(track_fields::kParent, kRoot);
    return track;
  }
  void track(const Message& descriptor) {
    Message packet;
    packet.number(packet_fields::kSequence, 1).message(packet_fields::kTrackDescriptor, descriptor);
    out_.message(trace_fields::kPacket, packet);
  }
  void packet(std::int64_t time, const Message& event) {
    Message packet;
    packet.number(packet_fields::kTimestamp, static_cast<std::uint64_t>(time))
        .number(packet_fields::kSequence, 1)
        .message(packet_fields::kTrackEvent, event);
    out_.message(trace_fields::kPacket, packet);
  }

  // A slice ends before whatever begins at or after its end; what holds it ends after it.
  void write_slices() {
    std::vector<const TraceSlice*> open;
    const auto end_before = [&](const TraceSlice* next) {
      while (!open.empty() && (next == nullptr || next->lane != open.back()->lane ||
                               open.back()->end <= next->begin)) {
        end(*open.back());
        open.pop_back();
      }
    };
    for (const TraceSlice& slice : trace_.slices) {
      end_before(&slice);
      begin(slice);
      open.push_back(&slice);
    }
    end_before(nullptr);
  }
  void begin(const TraceSlice& slice) {
    Message event;
    event.number(event_fields::kType, event_fields::kBegin)
        .number(event_fields::kTrack, track_of(slice.lane))
        .bytes(event_fields::kName, slice.name);
    if (!slice.category.empty()) event.bytes(event_fields::kCategory, slice.category);
    annotate(event, "step", slice.step);
    if (slice.bytes > Bytes(0)) annotate(event, "bytes", slice.bytes.count());
    annotate(event, "kind", slice.kind);
    annotate(event, "origin", slice.origin);
    packet(slice.begin, event);
  }
  void end(const TraceSlice& slice) {
    Message event;
    event.number(event_fields::kType, event_fields::kEnd)
        .number(event_fields::kTrack, track_of(slice.lane));
    packet(slice.end, event);
  }
  static void annotate(Message& event, std::string_view name, std::int64_t value) {
    Message one;
    one.bytes(annotation_fields::kName, name)
        .number(annotation_fields::kInteger, static_cast<std::uint64_t>(value));
    event.message(event_fields::kAnnotation, one);
  }
  static void annotate(Message& event, std::string_view name, const std::string& value) {
    if (value.empty()) return;
    Message one;
    one.bytes(annotation_fields::kName, name).bytes(annotation_fields::kText, value);
    event.message(event_fields::kAnnotation, one);
  }

  const Trace& trace_;
  Message out_;
};

}  // namespace

std::string perfetto_trace(const Trace& trace) { return PerfettoWriter(trace).write(); }

}  // namespace lowtide::report
