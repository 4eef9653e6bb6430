#include "lowtide/solve/sequence/sequence.h"

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"
#include "lowtide/solve/interface/starts.h"

#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

std::vector<OpId> ops(std::initializer_list<std::size_t> indices) {
  std::vector<OpId> list;
  for (std::size_t i : indices) list.emplace_back(i);
  return list;
}

TEST_CASE("sequence: unread computations are removed transitively") {
  const Graph graph =
      Sketch({1, 1, 1, 1}).op({}, {0}).op({0}, {1}).op({}, {2}).op({1, 2}, {3}).keep({3}).graph();
  Problem problem{.graph = graph, .budget = Bytes(9)};
  CHECK(solve::without_unread(problem, ops({0, 1, 2, 0, 1, 3})) == ops({2, 0, 1, 3}));
  CHECK(solve::without_unread(problem, ops({0, 1, 2, 3})) == ops({0, 1, 2, 3}));
  problem.order = Order::given;
  CHECK(solve::without_unread(problem, ops({0, 1, 2, 0, 1, 3})) == ops({0, 1, 2, 0, 1, 3}));
  // A repetition may go in any order.
  CHECK(solve::without_unread(problem, ops({0, 1, 0, 2, 3})) == ops({0, 1, 2, 3}));
}

TEST_CASE("sequence: an op with `after` dependents stays in place") {
  const Graph graph =
      Sketch({1, 1, 1}).op({}, {0}).op({}, {1}).after({0}).op({0, 1}, {2}).keep({2}).graph();
  const Problem problem{.graph = graph, .budget = Bytes(9)};
  CHECK(solve::without_unread(problem, ops({0, 1, 0, 2})) == ops({0, 1, 0, 2}));
}

TEST_CASE(
    "sequence: the deadline of a recomputation is the first mutation of its inputs or kept "
    "outputs") {
  // Op 2 changes tensor 0 (an input) and tensor 1 (kept).
  const Graph graph = Sketch({1, 1, 1, 1})
                          .op({0}, {1})
                          .op({1}, {2})
                          .op({0, 1}, {3})
                          .mutates({0, 1})
                          .keep({1, 2, 3})
                          .graph();
  CHECK(solve::rerun_deadlines(graph, graph.order()) == std::vector<std::size_t>{2, 2, 2});
}

TEST_CASE("sequence: removing unread computations keeps random plans legal") {
  for (int i = 0; i < 300 * test_scale(); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    RandomGraphSettings settings;
    settings.ops = 2 + random.below(12);
    const Graph graph = random_graph(random, settings);
    const auto deadlines = solve::rerun_deadlines(graph, graph.order());
    std::vector<OpId> sequence;
    for (std::size_t at = 0; at < graph.op_count(); ++at) {
      for (std::size_t before = 0; before < at; ++before) {
        const OpId op = graph.order()[before];
        if (graph.recomputable(op) && at <= deadlines[op.index()] && random.chance(0.2))
          sequence.push_back(op);
      }
      sequence.push_back(graph.order()[at]);
    }
    const Timeline whole = simulate(graph, plan_from_sequence(graph, sequence));
    REQUIRE_FALSE(whole.violation);
    for (const Order order : {Order::given, Order::free}) {
      const Problem problem{.graph = graph, .budget = Bytes(0), .order = order};
      const auto rest = solve::without_unread(problem, sequence);
      const Timeline less = simulate(graph, plan_from_sequence(graph, rest));
      REQUIRE_FALSE(less.violation);
      CHECK(less.cost.peak <= whole.cost.peak);
      CHECK(less.cost.duration <= whole.cost.duration);
      CHECK(solve::without_unread(problem, rest) == rest);
    }
  }
}

TEST_CASE("sequence: removing unread computations keeps random plans with transfers legal") {
  for (int i = 0; i < 1000 * test_scale(); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    RandomGraphSettings settings;
    settings.ops = 2 + random.below(9);
    settings.on_host = 0.2;
    const Graph graph = random_graph(random, settings);
    const Plan plan = random_plan(random, graph);
    const auto cost = [&](std::span<const Event> events) {
      const Timeline timeline = simulate(graph, plan_from_events(graph, events, plan.machine));
      if (timeline.violation) FAIL(timeline.violation->reason);
      return timeline.cost;
    };
    const std::vector<Event> events = events_of(graph, plan);
    const Cost whole = cost(events);
    for (const Order order : {Order::given, Order::free}) {
      const Problem problem{.graph = graph, .budget = Bytes(0), .order = order};
      const auto rest = solve::without_unread(problem, events);
      CHECK(cost(rest).peak <= whole.peak);
      CHECK(solve::without_unread(problem, rest) == rest);
    }
  }
}

TEST_CASE("sequence: a duration beyond 63 bits is no plan") {
  const Graph graph =
      Sketch({1, 1}).op({}, {0}, INT64_MAX / 2).op({0}, {1}, INT64_MAX / 3).keep({1}).graph();
  const Problem problem{.graph = graph, .budget = Bytes(9)};
  solve::Context context(problem, "test", {});
  CHECK_FALSE(context.offer_sequence(ops({0, 1, 0})));
  CHECK_FALSE(context.has_plan());
  CHECK(context.offer_sequence(ops({0, 1})));
}

}  // namespace
}  // namespace lowtide
