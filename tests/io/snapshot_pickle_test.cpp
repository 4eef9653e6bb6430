// Pickles of snapshots: read back as they were written, and refused in their place.
#include "lowtide/io/snapshot_pickle.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/layout/snapshot_peak.h"
#include "lowtide/layout/snapshot_savings.h"

#include "io/refusal.h"
#include "support/scale.h"

namespace lowtide {
namespace {

using layout::SnapshotBlock;
using layout::SnapshotEvent;

layout::Snapshot example() {
  layout::Snapshot snapshot;
  snapshot.stacks.push_back({{"f", "m.py", 3}, {"größer", "n.py", 70'000}});
  snapshot.allocator = "expandable_segments:True";
  layout::SnapshotSegment segment;
  segment.address = 0x7f0000000000;
  segment.bytes = Bytes(1000);
  segment.stream = 7;
  segment.is_expandable = true;
  using State = SnapshotBlock::State;
  segment.blocks.push_back({0x7f0000000000, Bytes(600), Bytes(590), State::allocated, 1});
  segment.blocks.push_back({0x7f0000000258, Bytes(100), Bytes(100), State::awaiting_free, 0});
  segment.blocks.push_back({0x7f00000002bc, Bytes(300), Bytes(0), State::inactive, 0});
  snapshot.segments.push_back(segment);
  snapshot.traces.resize(2);
  for (std::int64_t i = 0; i < 2500; ++i)
    snapshot.traces[1].push_back({static_cast<SnapshotEvent::Kind>(i % 7), i, Bytes(i * 1'000'000),
                                  -i, i * 10'000'000'000, i % 2 == 0 ? 1u : 0u});
  return snapshot;
}

TEST_CASE("snapshots are read as they were written") {
  const layout::Snapshot snapshot = example();
  const std::string text = io::write_snapshot(snapshot);
  const layout::Snapshot again = io::read_snapshot_text(text, "again");
  CHECK(again.segments == snapshot.segments);
  CHECK(again.traces == snapshot.traces);
  CHECK(again.stacks == snapshot.stacks);
  CHECK(again.allocator == snapshot.allocator);
  CHECK(io::write_snapshot(again) == text);
}

TEST_CASE("snapshots cut short anywhere are refused") {
  layout::Snapshot snapshot = example();
  snapshot.traces[1].resize(3);
  const std::string text = io::write_snapshot(snapshot);
  for (std::size_t size = 0; size < text.size(); ++size)
    CHECK(refusal_of([&] {
            io::read_snapshot_text(std::string_view(text).substr(0, size), "f");
          }).reason != "not refused");
}

std::string bytes(std::string_view text) { return std::string(text); }
using namespace std::literals;

Refusal refused(std::string_view pickle) {
  return refusal_of([&] { io::read_snapshot_text(pickle, "f"); });
}

TEST_CASE("pickles that are not plain data are refused at the opcode") {
  const std::string code =
      "opcode 0x63 is refused: a snapshot is plain data (numbers, text, lists, dictionaries), and "
      "no code of a pickle is run";
  CHECK(refused("\x80\x02"
                "cos\nsystem\nX\x02\0\0\0ls\x85R."sv) == Refusal{"f", "byte 2", code});
  for (const std::string_view opcode : {"c", "R", "b", "i", "o", "\x81", "\x92", "\x93", "P", "Q",
                                        "\x82", "\x83", "\x84", "\x97", "\x98", "\x8f"})
    CHECK(refused("\x80\x02}" + bytes(opcode) + ".").place == "byte 3");
  CHECK(refused("(dp0\n.").reason ==
        "is no pickle of protocol 2 to 5, which begins with byte 0x80");
  CHECK(refused("\x80\x06}.").reason == "protocol 6 is not known; must be 2 to 5");
}

TEST_CASE("pickles that do not add up are refused") {
  const auto reason = [](std::string_view pickle) { return refused(pickle).reason; };
  CHECK(reason("\x80\x02.") == "a value is missing");
  CHECK(reason("\x80\x02]]."sv) == "more than one value is left at the end");
  CHECK(reason("\x80\x02"
               "e.") == "a mark is missing");
  CHECK(reason("\x80\x02(a.") == "a value is missing");
  CHECK(reason("\x80\x02h\x05.") == "refers to a value that was not remembered");
  CHECK(reason("\x80\x02K\1K\2a.") == "items are appended to what is no list");
  CHECK(reason("\x80\x02](K\1e(K\1u.") == "items are set in what is no dictionary");
  CHECK(reason("\x80\x02}(K\1u.") == "items are set in what is no dictionary");
  CHECK(reason("\x80\x02X\xff\xff\xff\xffxx") == "the pickle is cut short");
  CHECK(reason("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffxx") == "the pickle is cut short");
  CHECK(reason("\x80\x02]q\0h\0a."sv) == "a value contains itself");
  CHECK(reason("\x80\x02" + std::string(200'000, ']') + std::string(199'999, 'a') + ".") ==
        "values are nested deeper than 100");
}

TEST_CASE("pickles that are no snapshots are refused by their path") {
  CHECK(refused("\x80\x02].").reason ==
        "must be a dictionary with \"segments\" and \"device_traces\", as "
        "torch.cuda.memory._dump_snapshot() writes it");
  CHECK(refused("\x80\x02}.") == Refusal{"f", "", "has no \"segments\""});

  const auto change = [](const auto& how) {
    layout::Snapshot snapshot = example();
    how(snapshot);
    return refusal_of([&] { io::read_snapshot_text(io::write_snapshot(snapshot), "f"); });
  };
  CHECK(change([](layout::Snapshot& s) { s.traces[1][2].bytes = Bytes(-1); }) ==
        Refusal{"f", "device_traces/1/2/size", "must be bytes from 0 to 2^56, not -1"});
  CHECK(change([](layout::Snapshot& s) { s.traces[1][2].address = INT64_MAX; }) ==
        Refusal{"f", "device_traces/1/2/addr",
                "must be an address from 0 to 2^62, not 9223372036854775807"});
  CHECK(change([](layout::Snapshot& s) { s.segments[0].blocks[1].address += 4; }) ==
        Refusal{"f", "segments/0/blocks/1",
                "begins at 139637976728156, but the block before it ends at 139637976728152"});
  CHECK(change([](layout::Snapshot& s) { s.segments[0].blocks.pop_back(); }) ==
        Refusal{"f", "segments/0",
                "its blocks end at 139637976728252, the segment at 139637976728552"});
}

TEST_CASE("snapshots that refer to one list over and over are refused") {
  // device_traces is a list of 60,000 times the same list of 60,000 times the same event.
  std::string pickle =
      "\x80\x02}(X\x08\0\0\0segments]X\x0d\0\0\0device_traces]q\1(](}(X\x06\0\0\0actionX\1\0\0\0"
      "xuq\2"s;
  for (int i = 0; i < 60'000; ++i) pickle += "h\2";
  pickle += "eq\3";
  for (int i = 0; i < 60'000; ++i) pickle += "h\3";
  pickle += "eu.";
  CHECK(refused(pickle).reason == "refers to the same lists over and over");
}

// Read, and all that is made of it.
bool is_taken(const std::string& pickle) {
  try {
    const layout::Snapshot snapshot = io::read_snapshot_text(pickle, "f");
    CHECK(io::read_snapshot_text(io::write_snapshot(snapshot), "again").traces == snapshot.traces);
    for (const std::size_t device : layout::recorded_devices(snapshot)) {
      const layout::Record record = layout::record_of(snapshot, device);
      const layout::RecordedPeak peak = layout::peak_of(snapshot, record);
      CHECK(peak.passing + peak.from_start + peak.to_end + peak.throughout == peak.allocated);
      Limits limits({.work = 100});
      const layout::SnapshotSavings savings = layout::savings_of(snapshot, record, limits);
      CHECK(savings.arenas >= savings.loads);
    }
    return true;
  } catch (const InputError&) {
    return false;
  } catch (const OverflowError&) {
    return false;
  }
}

TEST_CASE("snapshots: mutated pickles are refused or analysed, and never crash") {
  layout::Snapshot snapshot = example();
  snapshot.traces[1].resize(20);
  const std::string good = io::write_snapshot(snapshot);
  int taken = 0;
  const int rounds = 4000 * test_scale();
  for (int i = 0; i < rounds; ++i) {
    Random random(static_cast<std::uint64_t>(i));
    std::string text = good;
    for (std::size_t k = random.below(4) + 1; k > 0; --k) {
      const std::size_t at = random.below(text.size());
      switch (random.below(5)) {
        case 0: text.erase(at, 1 + random.below(8)); break;
        case 1:
          text.insert(random.below(text.size()), text.substr(at, 1 + random.below(64)));
          break;
        case 2: text[at] = static_cast<char>(0xff); break;
        default: text[at] = static_cast<char>(random.below(256)); break;
      }
      if (text.empty()) text = good;
    }
    taken += is_taken(text) ? 1 : 0;
  }
  CHECK(taken > rounds / 20);
}

}  // namespace
}  // namespace lowtide
