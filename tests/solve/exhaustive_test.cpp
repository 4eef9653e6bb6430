// On graphs that it takes it is the last word: held against brute force, which shares no code.
#include "lowtide/solve/exhaustive/exhaustive.h"

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"

#include "oracles/brute_force.h"
#include "solve/run_solver.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

TEST_CASE("exhaustive: every small graph is solved") {
  const auto solver = solve::exhaustive::make_exhaustive();
  int infeasible = 0, recomputed = 0;
  for (int i = 0; i < samples(400); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i) + 70'000);
    RandomGraphSettings settings;
    settings.ops = 2 + random.below(5);
    settings.mutates = settings.once = 0.2;
    const Graph graph = random_graph(random, settings);
    const Order order = random.chance(0.5) ? Order::free : Order::given;
    const Bytes least = oracle::smallest_peak(graph, order);
    const Problem problem{
        .graph = graph, .budget = least + Bytes(random.between(-1, 3)), .order = order};
    const auto best = oracle::fastest(graph, order, problem.budget);
    const Outcome outcome = run_solver(*solver, problem);
    CHECK(outcome.status == (best ? Status::optimal : Status::infeasible));
    if (best) CHECK(outcome.cost.duration == best->duration);
    infeasible += best ? 0 : 1;
    recomputed += best && best->duration > graph.total_time() ? 1 : 0;
  }
  CHECK(infeasible > samples(20));
  CHECK(recomputed > samples(20));
}

// Two inputs that die at once, an op that may not run again, and bytes for no detour: the search
// found this plan only after a million changes.
TEST_CASE("exhaustive: a plan that annealing hardly finds") {
  const Graph graph = Sketch({10, 3, 3, 2, 3, 8, 7, 1})
                          .resident(4)
                          .op({0}, {1, 2, 3}, 1)
                          .mutates({0})
                          .op({}, {4}, 0)
                          .workspace(6)
                          .op({1, 2}, {5, 6}, 6)
                          .op({2}, {7}, 5)
                          .workspace(1)
                          .once()
                          .after({1})
                          .op({5, 4}, {}, 0)
                          .workspace(4)
                          .mutates({5})
                          .keep({4, 6, 7})
                          .graph();
  const Outcome outcome = run_solver(*solve::exhaustive::make_exhaustive(),
                                     {.graph = graph,
                                      .budget = oracle::smallest_peak(graph, Order::given),
                                      .order = Order::given});
  CHECK(outcome.status == Status::optimal);
  CHECK(outcome.cost.duration == Ticks(18));
}

TEST_CASE("exhaustive: large graphs are refused or given up") {
  const auto solver = solve::exhaustive::make_exhaustive();
  CHECK_FALSE(solver->supports({.graph = generate("chain", 20, 1), .budget = Bytes(0)}).yes);
  Random random(5);
  RandomGraphSettings settings = RandomGraphSettings::plain(kSanitized ? 13 : 16);
  settings.reads = 6;
  settings.window = 16;
  const Graph graph = random_graph(random, settings);
  const Outcome outcome =
      run_solver(*solver, {.graph = graph, .budget = own_peak(graph) - Bytes(1)});
  const bool settled = outcome.status == Status::optimal || outcome.status == Status::infeasible;
  CHECK((outcome.stopped_by == StopReason::finished) == settled);
}

}  // namespace
}  // namespace lowtide
