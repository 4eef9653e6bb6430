// What plans ask of an allocator, by hand, and what comes of it.
#include "lowtide/layout/footprint.h"

#include <map>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"

#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide::layout {
namespace {

constexpr std::int64_t kM = 1 << 20;

// "+0:10" an allocation of 10 bytes, "-0" its free, "|" the end of a step.
std::string words(const Trace& trace) {
  std::string text;
  for (const TraceEvent& event : trace) {
    if (!text.empty()) text += ' ';
    if (event.kind == TraceEvent::Kind::allocate)
      text += "+" + std::to_string(event.id) + ":" + std::to_string(event.bytes.count());
    else
      text += event.kind == TraceEvent::Kind::free ? "-" + std::to_string(event.id) : "|";
  }
  return text;
}

TEST_CASE("plan trace: parameters once, inputs and outputs with each step") {
  // t0 input, t1 parameter -> op 0 -> t2 -> op 1, workspace 7 -> t3, an output
  const Graph graph = Sketch({10, 20, 30, 5})
                          .op({0, 1}, {2})
                          .op({2}, {3})
                          .workspace(7)
                          .parameters({1})
                          .keep({3})
                          .resident(3)
                          .graph();
  CHECK(words(plan_trace(graph, steps("c0 c1 f2"), 2)) ==
        "+0:3 +1:20 "
        "+2:10 +3:30 +4:5 +5:7 -5 -3 -4 -2 | "
        "+6:10 +7:30 +8:5 +9:7 -9 -7 -8 -6 |");
}

TEST_CASE("footprint: the unplanned step has on the device what is at home on the host") {
  const auto sketch = [] {
    return Sketch({3 * kM, 2 * kM}).op({0}, {1}).parameters({0}).keep({1});
  };
  const FootprintTerms terms{AllocatorSettings(), 3, {}};
  const DeviceFootprint home = own_footprint(sketch().on_host({0}).graph(), terms);
  const DeviceFootprint device = own_footprint(sketch().graph(), terms);
  CHECK(home.live == own_peak(sketch().on_host({0}).graph()));
  CHECK(home.live == device.live);
  CHECK(home.replay.peaks.reserved == device.replay.peaks.reserved);
}

TEST_CASE("plan trace: a parameter that comes back from the host keeps what it came back to") {
  const Graph graph =
      Sketch({10, 20, 5}).op({0}, {1}).op({1, 0}, {2}).parameters({0}).keep({2}).graph();
  CHECK(words(plan_trace(graph, steps("o0 c0 f0 p0 c1 f1"), 2)) ==
        "+0:10 "
        "+1:20 -0 +2:10 +3:5 -1 -3 | "
        "+4:20 -2 +5:10 +6:5 -4 -6 |");
}

TEST_CASE(
    "plan trace: what a plan may free, and what is at home on the host, belongs to the step") {
  const Graph freed =
      Sketch({10, 20}).op({0}, {1}).releasable({0}).parameters({0}).keep({1}).graph();
  CHECK(words(plan_trace(freed, steps("c0 f0"), 2)) == "+0:10 +1:20 -0 -1 | +2:10 +3:20 -2 -3 |");
  const Graph over = Sketch({10, 10, 4})
                         .op({0}, {1})
                         .in_place({{0, 1}})
                         .op({1}, {2})
                         .releasable({0})
                         .keep({1, 2})
                         .graph();
  CHECK(words(plan_trace(over, steps("i0,0 c1"), 2)) == "+0:10 +1:4 -1 -0 | +2:10 +3:4 -3 -2 |");
  const Graph home = Sketch({10, 20}).op({0}, {1}).on_host({0}).parameters({0}).keep({1}).graph();
  CHECK(words(plan_trace(home, steps("p0 c0 f0"), 2)) == "+0:10 +1:20 -0 -1 | +2:10 +3:20 -2 -3 |");
}

TEST_CASE("plan trace: of random plans every step asks for what is live, and leaves nothing") {
  for (int seed = 0; seed < samples(300); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    RandomGraphSettings settings;
    settings.ops = random.below(13);
    settings.on_host = random.chance(0.5) ? 0.3 : 0;
    const Graph graph = random_graph(random, settings);
    const Plan plan = random_plan(random, graph, {.transfers = true, .restless = random.uniform()});
    std::map<std::int64_t, Bytes> held;
    Bytes now, most;
    std::vector<Bytes> ends;
    for (const TraceEvent& event : plan_trace(graph, plan, 3)) {
      if (event.kind == TraceEvent::Kind::allocate) {
        CHECK(held.emplace(event.id, event.bytes).second);
        now += event.bytes;
      } else if (event.kind == TraceEvent::Kind::free) {
        REQUIRE(held.count(event.id) == 1);
        now -= held.at(event.id);
        held.erase(event.id);
      } else {
        ends.push_back(now);
      }
      most = std::max(most, now);
    }
    CHECK(most == simulate(graph, plan).cost.peak);
    REQUIRE(ends.size() == 3);
    CHECK(ends[0] == ends[2]);
  }
}

TEST_CASE("footprint: allocated, reserved, and the settings that would help") {
  // A chain whose tensors grow: each needs a segment that no freed one serves.
  Sketch sketch({12 * kM, 14 * kM, 16 * kM, 18 * kM, 20 * kM});
  for (std::int64_t i = 0; i < 4; ++i) sketch.op({i}, {i + 1});
  const Graph graph = sketch.keep({4}).graph();
  const Plan plan = own_plan(graph);
  const DeviceFootprint found = footprint(graph, plan, {});
  CHECK(found.live == Bytes(50 * kM));
  CHECK(found.replay.peaks.allocated == found.live);
  CHECK(found.replay.peaks.requested == found.live);
  CHECK(found.replay.peaks.reserved == Bytes(80 * kM));
  CHECK(found.replay.steps.size() == kFootprintSteps);
  REQUIRE(found.better.size() == 1);
  CHECK(found.better[0].settings == "expandable_segments:True");
  CHECK(found.better[0].reserved == Bytes(60 * kM));

  FootprintTerms terms;
  terms.memory = Bytes(60 * kM);
  const DeviceFootprint tight = footprint(graph, plan, terms);
  CHECK_FALSE(tight.replay.out_of_memory);
  CHECK(tight.replay.counts.retries > 0);
  terms.memory = Bytes(49 * kM);
  CHECK(footprint(graph, plan, terms).replay.out_of_memory);
}

TEST_CASE("footprint: a plan that breaks a rule and no steps are refused") {
  const Graph graph = Sketch({10, 20}).op({0}, {1}).keep({1}).graph();
  CHECK_THROWS_AS(footprint(graph, steps("c0 f1"), {}), InputError);
  FootprintTerms none;
  none.steps = 0;
  CHECK_THROWS_AS(footprint(graph, steps("c0"), none), InputError);
}

}  // namespace
}  // namespace lowtide::layout
