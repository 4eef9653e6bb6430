// Snapshots of random plans against the simulator, and the peak of records by hand.
#include <algorithm>
#include <map>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/layout/plan_snapshot.h"
#include "lowtide/layout/snapshot_peak.h"
#include "lowtide/layout/snapshot_savings.h"
#include "lowtide/sim/simulate.h"

#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"

namespace lowtide::layout {
namespace {

using Kind = SnapshotEvent::Kind;
using State = SnapshotBlock::State;

// The most bytes of the events, which must not overlap, and what they leave behind.
Bytes replayed_peak(const std::vector<SnapshotEvent>& events,
                    std::map<std::int64_t, SnapshotEvent>& live) {
  Bytes now, peak;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const SnapshotEvent& event = events[i];
    if (i > 0) CHECK(event.microseconds >= events[i - 1].microseconds);
    if (event.kind == Kind::allocate) {
      const auto next = live.lower_bound(event.address);
      CHECK((next == live.end() || event.address + event.bytes.count() <= next->first));
      if (next != live.begin()) {
        const SnapshotEvent& below = std::prev(next)->second;
        CHECK(below.address + below.bytes.count() <= event.address);
      }
      live[event.address] = event;
      now += event.bytes;
      peak = std::max(peak, now);
    } else if (event.kind == Kind::free_completed) {
      REQUIRE(i > 0);
      CHECK(events[i - 1].kind == Kind::free_requested);
      CHECK(events[i - 1].address == event.address);
      CHECK(live.at(event.address).bytes == event.bytes);
      CHECK(live.at(event.address).stack == event.stack);
      live.erase(event.address);
      now -= event.bytes;
    }
  }
  return peak;
}

void check_blocks(const Snapshot& snapshot, const std::map<std::int64_t, SnapshotEvent>& live) {
  std::size_t held = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    std::int64_t at = segment.address;
    for (const SnapshotBlock& block : segment.blocks) {
      CHECK(block.address == at);
      at += block.bytes.count();
      if (block.state == State::inactive) continue;
      ++held;
      CHECK(live.at(block.address).bytes == block.bytes);
    }
    CHECK(at == segment.address + segment.bytes.count());
  }
  CHECK(held == live.size());
}

TEST_CASE(
    "snapshots: random plans have the simulator's peak, and blocks that tile their segments") {
  for (int i = 0; i < 300 * test_scale(); ++i) {
    Random random(static_cast<std::uint64_t>(i));
    RandomGraphSettings settings;
    settings.ops = random.below(13);
    if (random.chance(0.5)) settings.on_host = 0.3;
    const Graph graph = random_graph(random, settings);
    PlanFile file;
    file.plan = random_plan(random, graph, {.restless = random.uniform()});
    const Snapshot snapshot = plan_snapshot(graph, file);
    REQUIRE(snapshot.traces.size() == 1);
    std::map<std::int64_t, SnapshotEvent> live;
    CHECK(replayed_peak(snapshot.traces[0], live) == simulate(graph, file.plan).cost.peak);
    check_blocks(snapshot, live);

    // The record is whole, and its blocks are what the events say.
    const Record record = record_of(snapshot, 0);
    CHECK(record.contradictions == 0);
    CHECK(std::ranges::count_if(record.blocks, &RecordedBlock::is_from_start) == 0);
    // A ring buffer that has lost the first events comes to the same blocks.
    Snapshot cut = snapshot;
    const auto lost = static_cast<std::ptrdiff_t>(random.below(snapshot.traces[0].size() + 1));
    cut.traces[0].erase(cut.traces[0].begin(), cut.traces[0].begin() + lost);
    const Record rest = record_of(cut, 0);
    CHECK(rest.contradictions == 0);
    std::vector<RecordedBlock> expected;
    for (RecordedBlock block : record.blocks) {
      if (block.end < lost) continue;
      block.begin = std::max<std::int64_t>(block.begin - lost, RecordedBlock::kBeforeRecord);
      block.end -= lost;
      expected.push_back(block);
    }
    REQUIRE(rest.blocks.size() == expected.size());
    const auto sizes = [](const std::vector<RecordedBlock>& blocks) {
      std::vector<std::tuple<std::int64_t, std::int64_t, Bytes>> found;
      for (const RecordedBlock& block : blocks)
        found.emplace_back(block.begin, block.end, block.bytes);
      std::ranges::sort(found);
      return found;
    };
    CHECK(sizes(rest.blocks) == sizes(expected));
  }
}

// One device, whose only segment holds what is live at the end.
Snapshot recorded(std::vector<SnapshotEvent> events, std::vector<SnapshotBlock> blocks) {
  Snapshot snapshot;
  snapshot.stacks.push_back({{"empty", "/x/site-packages/torch/a.py", 1}, {"f", "/u/m.py", 7}});
  snapshot.stacks.push_back({{"g", "/u/m.py", 9}});
  SnapshotSegment segment;
  for (const SnapshotBlock& block : blocks) segment.bytes += block.bytes;
  segment.blocks = std::move(blocks);
  snapshot.segments.push_back(segment);
  snapshot.traces.push_back(std::move(events));
  return snapshot;
}

TEST_CASE("snapshots: the peak has owners, and four kinds of bytes") {
  const Snapshot snapshot =
      recorded({{Kind::free_requested, 512, Bytes(512), 0, 0, 0},
                {Kind::free_completed, 512, Bytes(512), 0, 0, 0},
                {Kind::allocate, 512, Bytes(1000), 0, 0, 1},  // passing
                {Kind::allocate, 2048, Bytes(600), 0, 0, 2},  // to the end
                {Kind::allocate, 8192, Bytes(100), 0, 0, 1},  // passing; then the peak
                {Kind::free_requested, 512, Bytes(1000), 0, 0, 0},
                {Kind::free_completed, 512, Bytes(1000), 0, 0, 0},
                {Kind::free_requested, 8192, Bytes(100), 0, 0, 0},
                {Kind::free_completed, 8192, Bytes(100), 0, 0, 0},
                {Kind::free_requested, 4096, Bytes(300), 0, 0, 0},
                {Kind::free_completed, 4096, Bytes(300), 0, 0, 0}},
               {{0, Bytes(512), Bytes(500), State::allocated, 2},
                {512, Bytes(1536), Bytes(0), State::inactive, 0},
                {2048, Bytes(1024), Bytes(600), State::allocated, 2},
                {3072, Bytes(7168), Bytes(0), State::inactive, 0}});
  const Record record = record_of(snapshot, 0);
  CHECK(record.contradictions == 0);
  CHECK(std::ranges::count_if(record.blocks, &RecordedBlock::is_from_start) == 3);
  CHECK(record.reserved_peak == Bytes(10240));
  const RecordedPeak peak = peak_of(snapshot, record);
  CHECK(peak.event == 4);
  CHECK(peak.allocated == Bytes(512 + 1024 + 1024 + 512 + 512));
  CHECK(peak.requested == Bytes(500 + 1000 + 600 + 100 + 300));
  CHECK(peak.passing == Bytes(1024 + 512));
  CHECK(peak.to_end == Bytes(1024));
  CHECK(peak.from_start == Bytes(512));
  CHECK(peak.throughout == Bytes(512));
  REQUIRE(peak.owners.size() == 3);
  CHECK(peak.owners[0].bytes == Bytes(1536));
  CHECK(peak.owners[0].blocks == 2);
  CHECK(peak.owners[0].frames == Stack{{"g", "/u/m.py", 9}});
  CHECK(peak.owners[1].frames == Stack{{"f", "/u/m.py", 7}});  // not PyTorch's own frame
  CHECK(peak.owners[1].bytes == Bytes(1536));
  CHECK(peak.owners[2].frames.empty());

  Limits limits({.work = 1000});
  const SnapshotSavings savings = savings_of(snapshot, record, limits);
  CHECK(savings.reserved == Bytes(2 << 20));
  CHECK(savings.loads == peak.allocated);
  CHECK(savings.arenas == peak.allocated);
}

TEST_CASE("snapshots: events that contradict the others are left out and counted") {
  const Snapshot snapshot = recorded({{Kind::allocate, 0, Bytes(512), 0, 0, 1},
                                      {Kind::allocate, 0, Bytes(1024), 0, 0, 2},
                                      {Kind::segment_free, 0, Bytes(2048), 0, 0, 0},
                                      {Kind::free_completed, 64, Bytes(512), 0, 0, 0},
                                      {Kind::free_completed, 64, Bytes(512), 0, 0, 0}},
                                     {{0, Bytes(1024), Bytes(1024), State::allocated, 2}});
  const Record record = record_of(snapshot, 0);
  CHECK(record.contradictions == 2);
  CHECK(record.reserved_peak == Bytes(3072));
  CHECK(peak_of(snapshot, record).allocated == Bytes(1536));
}

TEST_CASE("snapshots: settings that are not modelled are replaced by the defaults") {
  Snapshot snapshot = recorded({}, {{0, Bytes(1024), Bytes(1024), State::allocated, 1}});
  snapshot.allocator = "backend:cudaMallocAsync";
  Limits limits({.work = 10});
  const Record record = record_of(snapshot, 0);
  const SnapshotSavings savings = savings_of(snapshot, record, limits);
  CHECK(savings.settings.empty());
  CHECK_FALSE(savings.settings_refused.empty());
  snapshot.allocator = "expandable_segments:True,garbage_collection_threshold:0.8";
  const SnapshotSavings known = savings_of(snapshot, record, limits);
  CHECK(known.settings == "expandable_segments:True");
  CHECK(known.settings_refused.empty());
}

}  // namespace
}  // namespace lowtide::layout
