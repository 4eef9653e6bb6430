#include "lowtide/plan/events.h"

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"

#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {

namespace {

Event c(std::size_t op) { return Event::compute(OpId(op)); }
Event f(std::size_t t) { return Event::fetch(TensorId(t)); }
Event h(std::size_t t) { return Event::hold(TensorId(t)); }

std::vector<Step> made(const Graph& graph, const std::vector<Event>& events) {
  const Plan plan = plan_from_events(graph, events, machine_by_hand());
  if (const auto violation = simulate(graph, plan).violation) FAIL(violation->reason);
  CHECK(events_of(graph, plan) == events);
  return plan.steps;
}

// f -> 0; g(0) -> 1; h(1) -> 2; k(0, 2) -> 3
Sketch skip() {
  return Sketch({4, 1, 1, 1}).op({}, {0}).op({0}, {1}).op({1}, {2}).op({0, 2}, {3}).keep({3});
}

}  // namespace

TEST_CASE("events: a fetched tensor is offloaded after its op, and freed after its last use") {
  const Graph graph = skip().graph();
  CHECK(made(graph, {c(0), c(1), c(2), f(0), c(3)}) ==
        steps("c0 o0 c1 f0 c2 f1 p0 c3 f0 f2").steps);
}

TEST_CASE("events: a hold delays the free, and so the wait for the copy") {
  const Graph graph = skip().graph();
  CHECK(made(graph, {c(0), c(1), c(2), h(0), f(0), c(3)}) ==
        steps("c0 o0 c1 c2 f1 f0 p0 c3 f0 f2").steps);
}

TEST_CASE("events: a tensor is offloaded once, also if it is recomputed") {
  // f -> 0; g(0) -> 1; h(0) -> 2; k(0) -> 3
  const Graph graph =
      Sketch({1, 1, 1, 1}).op({}, {0}).op({0}, {1}).op({0}, {2}).op({0}, {3}).keep({3}).graph();
  CHECK(made(graph, {c(0), c(1), f(0), c(2), f(0), c(3)}) ==
        steps("c0 o0 c1 f0 f1 p0 c2 f0 f2 p0 c3 f0").steps);
  CHECK(made(graph, {c(0), c(1), c(0), c(2), f(0), c(3)}) ==
        steps("c0 o0 c1 f0 f1 c0 c2 f0 f2 p0 c3 f0").steps);
}

TEST_CASE("events: inputs are offloaded and fetched; a releasable input may be freed for good") {
  const Graph graph = Sketch({1, 1, 1, 1}).op({0}, {2}).op({1, 2}, {3}).keep({3}).graph();
  CHECK(made(graph, {c(0), c(1), f(0)}) == steps("o0 c0 f0 c1 f2 p0").steps);
  CHECK(made(graph, {f(1), c(0), c(1)}) == steps("o1 f1 p1 c0 c1 f2").steps);
  const Graph loose =
      Sketch({1, 1, 1, 1}).op({0}, {2}).op({1, 2}, {3}).releasable({0, 1}).keep({3}).graph();
  CHECK(made(loose, {c(0), c(1)}) == steps("c0 f0 c1 f1 f2").steps);
  CHECK(made(loose, {c(0), f(1), c(1)}) == steps("o1 f1 c0 f0 p1 c1 f1 f2").steps);
}

TEST_CASE("events: a tensor at home on the host is fetched, and copied back when it is changed") {
  const Graph graph = Sketch({1, 1, 1}).op({0}, {1}).op({0, 1}, {2}).on_host({0}).keep({2}).graph();
  CHECK(made(graph, {f(0), c(0), f(0), c(1)}) == steps("p0 c0 f0 p0 c1 f0 f1").steps);
  const Graph changed =
      Sketch({1, 1, 1}).op({0}, {1}).op({0, 1}, {2}).mutates({0}).on_host({0}).keep({2}).graph();
  CHECK(made(changed, {f(0), c(0), f(0), c(1)}) == steps("p0 c0 f0 p0 c1 o0 f0 f1").steps);
}

TEST_CASE("events: a mutation invalidates the host copy, so a second one is made") {
  const Graph graph =
      Sketch({1, 1, 1}).op({0}, {1}).op({0, 1}, {}).mutates({0}).op({1}, {2}).keep({2}).graph();
  CHECK(made(graph, {c(0), f(0), c(1), c(2), f(0)}) ==
        steps("o0 c0 f0 p0 c1 o0 f0 c2 f1 p0").steps);
  CHECK(made(graph, {c(0), c(1), c(2), f(0)}) == steps("c0 c1 o0 f0 c2 f1 p0").steps);
}

TEST_CASE("events: a held tensor is not overwritten") {
  // f -> 0; g(0) -> 1, perhaps in place; h(1) -> 2; k(0, 2) -> 3
  const Graph graph = Sketch({1, 1, 1, 1})
                          .op({}, {0})
                          .op({0}, {1})
                          .in_place({{0, 1}})
                          .op({1}, {2})
                          .op({0, 2}, {3})
                          .keep({3})
                          .graph();
  CHECK(made(graph, {c(0), c(1), c(2), f(0), c(3)}) == steps("c0 o0 i1,0 c2 f1 p0 c3 f0 f2").steps);
  CHECK(made(graph, {c(0), c(1), h(0), c(2), f(0), c(3)}) ==
        steps("c0 o0 c1 f0 c2 f1 p0 c3 f0 f2").steps);
}

TEST_CASE("events: random plans survive the round trip with no larger peak") {
  Random random(17);
  for (int i = 0; i < samples(3000); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(9);
    settings.on_host = 0.2;
    const Graph graph = random_graph(random, settings);
    const Plan plan = random_plan(random, graph);
    const Timeline before = simulate(graph, plan);
    REQUIRE_FALSE(before.violation);
    CAPTURE(i);

    const std::vector<Event> events = events_of(graph, plan);
    REQUIRE(computations(events) == computations(plan));
    const Plan again = plan_from_events(graph, events, plan.machine);
    const Timeline first = simulate(graph, again);
    if (first.violation) FAIL(first.violation->reason);
    REQUIRE(first.cost.peak <= before.cost.peak);

    // Its offloads now stand where they would be put.
    const Timeline second =
        simulate(graph, plan_from_events(graph, events_of(graph, again), plan.machine));
    if (second.violation) FAIL(second.violation->reason);
    REQUIRE(second.cost.peak <= first.cost.peak);
    REQUIRE(second.cost.duration <= first.cost.duration);
  }
}

}  // namespace lowtide
