// The timeline against the tensors it stands for, on random legal plans: what reports draw must add
// up.
#include <algorithm>

#include <doctest/doctest.h>

#include "support/judge.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

Bytes sum(const Graph& graph, const std::vector<TensorId>& tensors) {
  Bytes bytes;
  for (TensorId id : tensors) bytes += graph.bytes(id);
  return bytes;
}

struct Case {
  Graph graph;
  Order order;
  Plan plan;
};

Case any_case(int seed, bool transfers) {
  Random random(static_cast<std::uint64_t>(seed));
  RandomGraphSettings settings;
  settings.ops = random.below(13);
  Graph graph = random_graph(random, settings);
  const Order order = random.chance(0.5) ? Order::given : Order::free;
  Plan plan = random_plan(random, graph,
                          {.order = order, .transfers = transfers, .restless = random.uniform()});
  return {std::move(graph), order, std::move(plan)};
}

TEST_CASE("timeline: live tensors, workspace and resident bytes add up to the bytes in use") {
  for (int seed = 0; seed < samples(2000); ++seed) {
    CAPTURE(seed);
    const auto [graph, order, plan] = any_case(seed, true);
    const Timeline timeline = simulate(graph, plan);
    REQUIRE_FALSE(timeline.violation);
    REQUIRE(timeline.live.size() == plan.steps.size());
    REQUIRE(timeline.end.size() == plan.steps.size());
    CHECK(timeline.start == graph.resident() + graph.input_bytes());
    Bytes peak = timeline.start, host;
    std::vector<bool> away(graph.tensor_count(), false);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const Step& step = plan.steps[i];
      const Bytes workspace = step.is_compute() ? graph.workspace(step.op()) : Bytes(0);
      CHECK(timeline.live[i] ==
            sum(graph, live_tensors(graph, plan, i)) + workspace + graph.resident());
      peak = std::max(peak, timeline.live[i]);
      if (step.kind == StepKind::offload && !away[step.tensor().index()]) {
        away[step.tensor().index()] = true;
        host += graph.bytes(step.tensor());
      }
    }
    CHECK(timeline.cost.peak == peak);
    CHECK(timeline.cost.host_peak == host);
    const auto last = std::max_element(timeline.end.begin(), timeline.end.end());
    CHECK(timeline.cost.duration == (last == timeline.end.end() ? Ticks(0) : *last));
  }
}

TEST_CASE("timeline: the tensors live at a step") {
  // t0 (input) -> t1 -> t2; t0 stays
  const Graph graph = Sketch({10, 20, 5}).op({0}, {1}).op({1}, {2}).keep({2}).graph();
  const Plan plan = steps("c0 c1 f1");
  const TensorId t0(0), t1(1), t2(2);
  CHECK(live_tensors(graph, plan, 0) == std::vector{t0, t1});
  CHECK(live_tensors(graph, plan, 1) == std::vector{t0, t1, t2});
  CHECK(live_tensors(graph, plan, 2) == std::vector{t0, t1, t2});  // while it is freed
  CHECK(live_tensors(graph, plan, 3) == std::vector{t0, t2});      // at the end
  CHECK(simulate(graph, plan).peak_step() == 1);
}

TEST_CASE("timeline: the peak's step is the first, or the end for the start") {
  const Graph graph = Sketch({50, 8, 8}).op({}, {1}).op({}, {2}).releasable({0}).graph();
  // 50; 50 during the free; 8; 8 and 16
  const Timeline timeline = simulate(graph, steps("f0 c0 c1"));
  CHECK(timeline.peak_step() == 0);
  CHECK(simulate(graph, Plan{}).peak_step() == 0);
  const Timeline empty = simulate(Sketch({50}).graph(), Plan{});
  CHECK(empty.peak_step() == 0);
  CHECK(empty.cost.peak == Bytes(50));
}

TEST_CASE("timeline: without transfers the duration is the sum of what was computed") {
  for (int seed = 0; seed < samples(1500); ++seed) {
    CAPTURE(seed);
    const auto [graph, order, plan] = any_case(seed, false);
    Ticks total;
    for (const OpId op : sequence_of(plan)) total += graph.time(op);
    CHECK(simulate(graph, plan).cost.duration == total);
  }
}

TEST_CASE("timeline: the steps before a violation count") {
  const Graph graph = Sketch({10, 20, 5}).op({0}, {1}, 4).op({1}, {2}).keep({2}).graph();
  const Timeline timeline = simulate(graph, steps("c0 c0 c1"));
  REQUIRE(timeline.violation);
  CHECK(timeline.violation->step == 1);
  CHECK(timeline.live == std::vector{Bytes(30)});
  CHECK(timeline.cost == Cost{Ticks(4), Bytes(30), Bytes(0)});
}

TEST_CASE(
    "plans from a sequence: the same ops, never a larger peak, frees that cannot come earlier") {
  for (int seed = 0; seed < samples(2000); ++seed) {
    CAPTURE(seed);
    const auto [graph, order, plan] = any_case(seed, false);
    const std::vector<OpId> sequence = sequence_of(plan);
    const Plan tight = plan_from_sequence(graph, sequence);
    const Verdict verdict = judge({.graph = graph, .budget = Bytes::max(), .order = order}, tight);
    REQUIRE(verdict.ok);
    CHECK(sequence_of(tight) == sequence);
    const Cost loose = simulate(graph, plan).cost;
    CHECK(verdict.cost.peak <= loose.peak);
    CHECK(verdict.cost.duration == loose.duration);
    // A free one step earlier would take what its neighbour needs or make nothing better.
    for (std::size_t i = 1; i < tight.steps.size(); ++i) {
      if (tight.steps[i].kind != StepKind::free || !tight.steps[i - 1].is_compute()) continue;
      Plan earlier = tight;
      std::swap(earlier.steps[i], earlier.steps[i - 1]);
      const Timeline timeline = simulate(graph, earlier);
      const auto outputs = graph.outputs(tight.steps[i - 1].op());
      const auto inputs = graph.inputs(tight.steps[i - 1].op());
      const TensorId freed = tight.steps[i].tensor();
      const bool touched = std::count(outputs.begin(), outputs.end(), freed) > 0 ||
                           std::count(inputs.begin(), inputs.end(), freed) > 0;
      CHECK(touched);
      CHECK(timeline.violation);
    }
  }
}

TEST_CASE("baseline peak: given order, everything freed after its last use") {
  const Sketch chain = Sketch({10, 20, 30, 5}).op({0}, {1}).op({1}, {2}).op({2}, {3}).keep({3});
  CHECK(own_peak(chain.graph()) == Bytes(60));
  CHECK(own_peak(Sketch(chain).releasable({0}).graph()) == Bytes(50));
  // An unread releasable input goes at once, but the start counts it.
  const Sketch sinks = Sketch({50, 7, 9}).op({}, {1}).op({}, {2});
  CHECK(own_peak(Sketch(sinks).releasable({0}).graph()) == Bytes(50));
  CHECK(own_peak(sinks.graph()) == Bytes(59));
  const Sketch ordered = Sketch({10, 20, 100}).op({0}, {1}).workspace(4).op({0}, {2}).keep({2});
  CHECK(own_peak(ordered.graph()) == Bytes(110));
  CHECK(own_peak(Sketch(ordered).order({1, 0}).graph()) == Bytes(134));
}

}  // namespace
}  // namespace lowtide
