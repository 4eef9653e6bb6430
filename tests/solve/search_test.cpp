// The search as a solver: what it promises of its answers.
#include "lowtide/solve/local/search/search.h"

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/plan/budget.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/evict/evict.h"

#include "oracles/brute_force.h"
#include "solve/run_solver.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

Graph small_graph(Random& random) {
  RandomGraphSettings settings;
  settings.ops = 4 + random.below(4);
  return random_graph(random, settings);
}

TEST_CASE("search: never worse than its start") {
  const auto search = solve::local::search::make_search();
  for (int i = 0; i < samples(200); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    RandomGraphSettings drawn;
    drawn.ops = 3 + random.below(40);
    const Graph graph = random_graph(random, drawn);
    const Order order = random.chance(0.5) ? Order::given : Order::free;
    const Plan start = random_plan(random, graph, {.order = order, .transfers = false});
    const Cost cost = simulate(graph, start).cost;
    solve::ContextSettings settings;
    settings.limits.work = random.between(0, 2000);
    settings.starts = {start};
    const Outcome within =
        run_solver(*search, {.graph = graph, .budget = cost.peak, .order = order}, {}, settings);
    REQUIRE(within.plan);
    CHECK(within.cost.duration <= cost.duration);
    const Outcome beyond = run_solver(
        *search, {.graph = graph, .budget = cost.peak - Bytes(1), .order = order}, {}, settings);
    REQUIRE(beyond.smallest_peak);
    CHECK(*beyond.smallest_peak <= cost.peak);
  }
}

// At the graph's price it gives up what the start computes again, and has no time to come back.
TEST_CASE("search: a short run improves its start plan") {
  const Graph graph = generate("resnet", 120, 3);
  const auto search = solve::local::search::make_search();
  const Bytes budget = resolve_budget(parse_budget("act:50%"), graph);
  const Problem problem{.graph = graph, .budget = budget, .order = Order::given};
  solve::ContextSettings settings;
  settings.limits.work = 20'000;
  const Outcome start = run_solver(*solve::evict::make_evict(), problem, {}, settings);
  REQUIRE(start.plan);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CAPTURE(seed);
    settings.limits.work = 3000;
    settings.seed = seed;
    settings.starts = {*start.plan};
    const Outcome near = run_solver(*search, problem, "rounds=2 hot=0.01 near=on", settings);
    const Outcome far = run_solver(*search, problem, "rounds=2 hot=0.01 near=off", settings);
    CHECK(near.cost.duration < far.cost.duration);
  }
}

TEST_CASE("search: a start plan with transfers is a plan, wherever its copies are") {
  const auto search = solve::local::search::make_search();
  int begun = 0, answered = 0;
  for (int i = 0; i < samples(400); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i) + 9000);
    const Graph graph = small_graph(random);
    const Plan start = random_plan(random, graph);
    const Cost cost = simulate(graph, start).cost;
    solve::ContextSettings settings;
    settings.limits.work = 2000;
    settings.starts = {start};
    const Outcome outcome = run_solver(
        *search, {.graph = graph, .budget = cost.peak, .machine = start.machine}, {}, settings);
    REQUIRE(outcome.plan);
    CHECK(outcome.cost.duration <= cost.duration);
    begun += transfers(start) ? 1 : 0;
    answered += transfers(*outcome.plan) ? 1 : 0;
  }
  CHECK(begun > answered);
}

// f -> 0; a chain of four behind it; the last op reads tensor 0 again. Only one of the two ways to
// be without tensor 0 meanwhile is open where the other is switched off.
TEST_CASE("search: with a link a tensor is swapped, recomputed or held, by the options") {
  const Graph graph = Sketch({8, 4, 4, 4, 4, 1})
                          .op({}, {0}, 100)
                          .op({0}, {1}, 100)
                          .op({1}, {2}, 100)
                          .op({2}, {3}, 100)
                          .op({3}, {4}, 100)
                          .op({4, 0}, {5}, 100)
                          .keep({5})
                          .graph();
  Problem problem{.graph = graph, .budget = Bytes(13), .machine = machine_by_hand()};
  const auto solve = [&](std::string_view options) {
    solve::ContextSettings settings;
    settings.limits.work = 5000;
    return run_solver(*solve::local::search::make_search(), problem, options, settings);
  };
  const Outcome swapped = solve("");
  REQUIRE(swapped.plan);
  CHECK(swapped.cost.duration == Ticks(605));  // it fits only right before its reader
  CHECK(transfers(*swapped.plan));
  CHECK(swapped.cost.host_peak == Bytes(8));
  const Outcome repeated = solve("swap=off");
  REQUIRE(repeated.plan);
  CHECK(repeated.cost.duration == Ticks(700));
  CHECK_FALSE(transfers(*repeated.plan));
  CHECK(solve("recompute=off").cost.duration == Ticks(605));
  CHECK_FALSE(solve("recompute=off swap=off").plan);
  // The tensor does not fit into the host.
  problem.host_budget = Bytes(7);
  CHECK(solve("").cost.duration == Ticks(700));
  CHECK_FALSE(solve("recompute=off").plan);
}

TEST_CASE("search: tensors at home on the host are fetched") {
  const Graph graph = Sketch({4, 4, 1, 1})
                          .op({0}, {2})
                          .mutates({0})
                          .op({1, 2}, {3})
                          .on_host({0, 1})
                          .keep({3})
                          .graph();
  Problem problem{.graph = graph, .budget = Bytes(6), .machine = machine_by_hand()};
  solve::ContextSettings settings;
  settings.limits.work = 2000;
  const auto search = solve::local::search::make_search();
  const Outcome outcome = run_solver(*search, problem, {}, settings);
  REQUIRE(outcome.plan);
  CHECK(transfers(*outcome.plan));
  problem.machine.reset();
  CHECK_FALSE(solve::support_of(*search, problem).yes);
}

TEST_CASE("search: the same seed and limit of work give the same steps, another seed others") {
  const auto search = solve::local::search::make_search();
  const Graph graph = generate("transformer", 400, 1);
  const Problem problem{.graph = graph, .budget = Bytes(own_peak(graph).count() / 2)};
  const auto solve = [&](std::uint64_t seed) {
    solve::ContextSettings settings;
    settings.limits.work = sanitized(20'000, 100'000);
    settings.seed = seed;
    return run_solver(*search, problem, {}, settings);
  };
  const Outcome a = solve(1), b = solve(1), c = solve(2);
  REQUIRE((a.plan && b.plan && c.plan));
  CHECK(a.plan->steps == b.plan->steps);
  CHECK(a.history.size() == b.history.size());
  CHECK(a.plan->steps != c.plan->steps);
}

// Without a start within the budget it sometimes finds no way below it; where it does, it finds the
// best.
TEST_CASE("search: nearly always finds the optimum of small graphs") {
  const auto search = solve::local::search::make_search();
  int asked = 0, feasible = 0, reached = 0;
  // The same graphs whatever the scale, so that the thresholds mean the same.
  for (int i = 0; i < sanitized(20, 150); ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = small_graph(random);
    for (const Order order : {Order::free, Order::given}) {
      const auto curve = oracle::all_tradeoffs(graph, order);
      for (const oracle::Schedule& schedule : curve) {
        solve::ContextSettings settings;
        settings.limits.work = 10'000;
        const Outcome outcome = run_solver(
            *search, {.graph = graph, .budget = schedule.peak, .order = order}, {}, settings);
        ++asked;
        feasible += outcome.plan.has_value();
        reached += outcome.plan && outcome.cost.duration == schedule.duration;
      }
    }
  }
  MESSAGE(asked << " problems, " << feasible << " with a plan, " << reached << " optimal");
  if (kSanitized) return;  // too few to say how often
  CHECK(feasible >= 0.94 * asked);
  CHECK(reached >= 0.98 * feasible);
}

TEST_CASE("search: a start plan in another than the given order is ignored") {
  const Graph graph = Sketch({4, 4, 1}).op({}, {0}).op({}, {1}).op({0, 1}, {2}).keep({2}).graph();
  const std::vector<OpId> other = {OpId(1), OpId(0), OpId(2)};
  solve::ContextSettings settings;
  settings.limits.work = 100;
  settings.starts = {plan_from_sequence(graph, other)};
  const Problem problem{.graph = graph, .budget = Bytes(9), .order = Order::given};
  CHECK(computes(run_solver(*solve::local::search::make_search(), problem, {}, settings)) ==
        "0 1 2");
}

TEST_CASE("search: refuses sums beyond the exact range of doubles") {
  const auto search = solve::local::search::make_search();
  const std::int64_t most = std::int64_t{1} << 50;
  const auto supports = [&](const Graph& graph) {
    return search->supports({.graph = graph, .budget = Bytes(most)});
  };
  CHECK(supports(Sketch({most - 5}).op({}, {0}, most).workspace(5).graph()).yes);
  const solve::Support bytes = supports(Sketch({most - 4}).op({}, {0}).workspace(5).graph());
  CHECK_FALSE(bytes.yes);
  CHECK(bytes.reason.find("bytes") != std::string::npos);
  const solve::Support ticks = supports(Sketch({1}).op({}, {0}, most + 1).graph());
  CHECK_FALSE(ticks.yes);
  CHECK(ticks.reason.find("time") != std::string::npos);
  // What stays anyway is not counted.
  CHECK(supports(Sketch({INT64_MAX / 4, 1}).op({0}, {1}).resident(INT64_MAX / 4).graph()).yes);
}

TEST_CASE("search: is exact up to the largest accepted sums") {
  const std::int64_t most = (std::int64_t{1} << 48) - 1;
  const Graph graph = Sketch({most, most, most, 1})
                          .op({}, {0}, most)
                          .op({0}, {1}, most)
                          .op({1}, {2}, most)
                          .op({2, 0}, {3}, 1)
                          .keep({3})
                          .graph();
  solve::ContextSettings settings;
  settings.limits.work = 3000;
  const Outcome outcome = run_solver(*solve::local::search::make_search(),
                                     {.graph = graph, .budget = Bytes(2 * most + 1)}, {}, settings);
  REQUIRE(outcome.plan);
  CHECK(computes(outcome) == "0 1 2 0 3");
  const Outcome hopeless = run_solver(*solve::local::search::make_search(),
                                      {.graph = graph, .budget = Bytes(2 * most)}, {}, settings);
  CHECK_FALSE(hopeless.plan);
}

TEST_CASE("search: resident bytes far beyond the budget") {
  const Graph graph = Sketch({5, 5, 1})
                          .op({}, {0})
                          .op({0}, {1})
                          .op({0, 1}, {2})
                          .keep({2})
                          .resident(std::int64_t{1} << 60)
                          .graph();
  solve::ContextSettings settings;
  settings.limits.work = 3000;
  const Outcome outcome = run_solver(*solve::local::search::make_search(),
                                     {.graph = graph, .budget = Bytes(7)}, {}, settings);
  CHECK(outcome.status == Status::infeasible);
}

}  // namespace
}  // namespace lowtide
