#include "lowtide/plan/plan.h"

#include <limits>
#include <set>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/orders.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/problem.h"
#include "lowtide/sim/simulate.h"

#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {

namespace {

// A sequence that runs: `computations` ops or more, in the end every op at least once.
std::vector<OpId> random_sequence(const Graph& graph, Random& random) {
  std::vector<OpId> sequence;
  std::set<OpId> done;
  std::set<TensorId> changed;
  const auto order = random_order(graph, random);
  const auto runs_again = [&](OpId op) {
    if (!graph.recomputable(op) || done.count(op) == 0) return false;
    for (TensorId id : graph.inputs(op))
      if (changed.count(id) != 0) return false;
    for (TensorId id : graph.outputs(op))
      if (changed.count(id) != 0) return false;
    return true;
  };
  for (OpId op : order) {
    while (random.chance(0.4)) {
      const OpId again(random.below(graph.op_count()));
      if (runs_again(again)) sequence.push_back(again);
    }
    sequence.push_back(op);
    done.insert(op);
    for (TensorId id : graph.mutates(op)) changed.insert(id);
  }
  return sequence;
}

}  // namespace

TEST_CASE("plan_from_sequence frees after the last use, and at once what nobody uses") {
  // 0 -> f -> 1, 2; (1, 0) -> g -> 3
  const Graph graph = Sketch({1, 1, 1, 1}).op({0}, {1, 2}).op({1, 0}, {3}).keep({3}).graph();
  const Plan plan = plan_from_sequence(graph, graph.order());
  CHECK(plan.steps == steps("c0 f2 c1 f1").steps);
}

TEST_CASE("plan_from_sequence frees releasable inputs, unread ones before anything else") {
  const Graph graph = Sketch({1, 1, 1, 1}).op({0, 2}, {3}).releasable({0, 1}).keep({3}).graph();
  CHECK(plan_from_sequence(graph, graph.order()).steps == steps("f1 c0 f0").steps);
  const Graph kept = Sketch({1, 1}).op({0}, {1}).releasable({0}).keep({0}).graph();
  CHECK(plan_from_sequence(kept, kept.order()).steps == steps("c0 f1").steps);
}

TEST_CASE("plan_from_sequence serves each use by the latest computation") {
  // f -> 0; g(0) -> 1; h(0, 1) -> 2
  const Graph graph = Sketch({1, 1, 1}).op({}, {0}).op({0}, {1}).op({0, 1}, {2}).keep({2}).graph();
  const std::vector<OpId> sequence = {OpId(0), OpId(1), OpId(0), OpId(2)};
  const Plan plan = plan_from_sequence(graph, sequence);
  CHECK(plan.steps == steps("c0 c1 f0 c0 c2 f0 f1").steps);
  CHECK(sequence_of(plan) == sequence);
}

TEST_CASE("plan_from_sequence keeps the last computation of an output") {
  const Graph graph = Sketch({1, 1}).op({}, {0}).op({0}, {1}).keep({0, 1}).graph();
  const std::vector<OpId> sequence = {OpId(0), OpId(1), OpId(0)};
  CHECK(plan_from_sequence(graph, sequence).steps == steps("c0 c1 f0 c0").steps);
}

TEST_CASE("plan_from_sequence of a part of the graph, an output of which is missing") {
  const Graph graph = Sketch({1, 1}).op({}, {0}).op({0}, {1}).keep({1}).graph();
  CHECK(plan_from_sequence(graph, graph.order().first(1)).steps == steps("c0 f0").steps);
}

TEST_CASE("plans from random sequences are legal, and no step can be omitted or come earlier") {
  Random random(1);
  for (int i = 0; i < samples(1000); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(9);
    const Graph graph = random_graph(random, settings);
    const std::vector<OpId> sequence = random_sequence(graph, random);
    const Plan plan = plan_from_sequence(graph, sequence);
    const Timeline timeline = simulate(graph, plan);
    CAPTURE(i);
    if (timeline.violation) FAIL(timeline.violation->reason);
    REQUIRE(sequence_of(plan) == sequence);
    // A free that could come before the computation before it would be late.
    for (std::size_t at = 1; at < plan.steps.size(); ++at) {
      if (plan.steps[at].kind != StepKind::free || !plan.steps[at - 1].is_compute()) continue;
      Plan earlier = plan;
      std::swap(earlier.steps[at - 1], earlier.steps[at]);
      REQUIRE(simulate(graph, earlier).violation);
    }
  }
}

TEST_CASE("a plan of a chain of 200,000 ops") {
  const auto n = static_cast<std::size_t>(sanitized(20'000, 200'000));
  RandomGraphSettings settings = RandomGraphSettings::plain(n);
  settings.window = 1;
  settings.reads = 1;
  settings.shuffled = 0;
  Random random(2);
  const Graph graph = random_graph(random, settings);
  const Plan plan = plan_from_sequence(graph, graph.order());
  CHECK(sequence_of(plan).size() == n);
  CHECK_FALSE(simulate(graph, plan).violation);
}

TEST_CASE("overhead and gap in per cent") {
  CHECK(overhead_percent(Ticks(110), Ticks(100)) == doctest::Approx(10));
  CHECK(overhead_percent(Ticks(0), Ticks(0)) == 0);
  CHECK(gap_percent(Ticks(110), Ticks(100)) == doctest::Approx(10));
  CHECK(gap_percent(Ticks(0), Ticks(0)) == 0);
  CHECK(gap_percent(Ticks(5), Ticks(0)) == std::numeric_limits<double>::infinity());
}

TEST_CASE("words of plans") {
  CHECK(to_string(StepKind::compute) == "compute");
  CHECK(to_string(StepKind::prefetch) == "prefetch");
  CHECK(to_string(Status::infeasible) == "infeasible");
  CHECK(to_string(Order::given) == "given");
  CHECK(to_string(Objective::least_memory) == "least memory");
}

TEST_CASE("machine: a transfer takes its latency plus bytes / bandwidth, rounded up") {
  const Link link{Ticks(10), Bytes(25), Ticks(2)};
  CHECK(link.transfer_time(Bytes(0)) == Ticks(10));
  CHECK(link.transfer_time(Bytes(1)) == Ticks(11));
  CHECK(link.transfer_time(Bytes(25)) == Ticks(12));
  CHECK(link.transfer_time(Bytes(26)) == Ticks(13));
  const Link slow{Ticks(INT64_MAX), Bytes(1), Ticks(1)};
  CHECK_THROWS_AS(slow.transfer_time(Bytes(1)), OverflowError);
  const Link dear{Ticks(0), Bytes(1), Ticks(2)};
  CHECK_THROWS_AS(dear.transfer_time(Bytes::max()), OverflowError);
}

TEST_CASE("plans: a plan with transfers has computations, but is no sequence") {
  const Plan swap = steps("c0 o1 f1 c1 p1 c2"), plain = steps("c0 c1 f1 c2");
  CHECK(transfers(swap));
  CHECK(transfers(steps("p1")));
  CHECK_FALSE(transfers(plain));
  CHECK(computations(swap) == sequence_of(plain));
  CHECK_THROWS_AS(sequence_of(swap), InternalError);
}

}  // namespace lowtide
