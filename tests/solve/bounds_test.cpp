// The solver's claims against every schedule that nothing beats: never above the optimum,
// infeasible only where it is so, each relaxation alone and all together. And how often they are
// enough to prove the optimum, so that a bound that has become weak is noticed.
#include "lowtide/solve/bounds/bounds.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/bounds/stage/stage_branch.h"
#include "lowtide/solve/sequence/peak_floor.h"

#include "oracles/brute_force.h"
#include "solve/run_solver.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

constexpr std::array<std::string_view, 7> kParts = {
    "gaps=on cuts=off windows=off stages=off",
    "gaps=off cuts=on branching=off windows=off stages=off",
    "gaps=off cuts=on branching=on windows=off stages=off",
    "gaps=off cuts=off branching=off windows=on stages=off",
    "gaps=off cuts=off branching=on windows=on stages=off",
    "gaps=off cuts=off windows=off stages=on",
    ""};

struct Tally {
  std::int64_t budgets = 0, proven = 0;         // that some plan keeps, at an overhead
  std::int64_t infeasible = 0, recognised = 0;  // budgets
};

void check(const Problem& problem, const std::vector<oracle::Schedule>& curve,
           std::string_view options, Tally& tally) {
  CAPTURE(problem.budget.count());
  CAPTURE(options);
  const Outcome outcome = run_solver(*solve::bounds::make_bounds(), problem, options);
  CHECK(by_itself(outcome.stopped_by));
  CHECK(outcome.bound.peak <= curve.back().peak);
  const auto best = oracle::least_duration(curve, problem.budget);
  if (!best) {
    ++tally.infeasible;
    tally.recognised += outcome.status == Status::infeasible;
    return;
  }
  CHECK(outcome.bound.duration <= *best);
  CHECK(outcome.status != Status::infeasible);
  if (*best == problem.graph.total_time()) return;
  ++tally.budgets;
  tally.proven += outcome.bound.duration == *best;
}

std::array<Tally, kParts.size()> sweep(Order order, const RandomGraphSettings& base, int graphs,
                                       std::uint64_t seeds) {
  std::array<Tally, kParts.size()> tallies;
  for (int i = 0; i < graphs; ++i) {
    const std::uint64_t seed = seeds + static_cast<std::uint64_t>(i);
    CAPTURE(seed);
    Random random(seed);
    RandomGraphSettings settings = base;
    settings.ops = 4 + random.below(4);
    if (random.chance(0.4)) settings.reads = 2;
    const Graph graph = random_graph(random, settings);
    const auto curve = oracle::all_tradeoffs(graph, order);
    for (const oracle::Schedule& schedule : curve)
      for (const Bytes budget : {schedule.peak - Bytes(1), schedule.peak}) {
        if (budget < Bytes(0)) continue;
        const Problem problem{.graph = graph, .budget = budget, .order = order};
        for (std::size_t part = 0; part < kParts.size(); ++part)
          check(problem, curve, kParts[part], tallies[part]);
      }
    const Problem problem{.graph = graph, .budget = Bytes(0), .order = order};
    CHECK(solve::peak_floor(problem) <= curve.back().peak);
  }
  return tallies;
}

double share(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
}

// Graphs on which every feature is frequent, and so is recomputation.
RandomGraphSettings rich() {
  RandomGraphSettings settings;
  settings.several_outputs = 0.35;
  settings.mutates = 0.15;
  return settings;
}

void report(const std::array<Tally, kParts.size()>& tallies) {
  for (std::size_t part = 0; part < kParts.size(); ++part)
    MESSAGE("'" << std::string(kParts[part]) << "': proven "
                << share(tallies[part].proven, tallies[part].budgets) << " of "
                << tallies[part].budgets << ", recognised "
                << share(tallies[part].recognised, tallies[part].infeasible) << " of "
                << tallies[part].infeasible);
}

TEST_CASE("bounds: never above the optimum, in the given order") {
  const auto tallies = sweep(Order::given, rich(), samples(600), 0);
  report(tallies);
}

TEST_CASE("bounds: never above the optimum, with a free order") {
  const auto tallies = sweep(Order::free, rich(), samples(400), 1'000'000);
  report(tallies);
}

TEST_CASE("bounds: never above the optimum, for figures near the integer limits") {
  RandomGraphSettings settings = rich();
  settings.bytes = std::int64_t{1} << 43;
  settings.time = std::int64_t{1} << 56;
  settings.workspace = settings.bytes;
  sweep(Order::given, settings, samples(60), 4'000'000);
  sweep(Order::free, settings, samples(60), 5'000'000);
}

// Small graphs have fewer moments than the stages that it begins with: so it begins with one here.
TEST_CASE("bounds: never above the optimum, if most stages are added late") {
  int budgets = 0, proven = 0;
  for (int i = 0; i < samples(300); ++i) {
    CAPTURE(i);
    Random random(7'000'000 + static_cast<std::uint64_t>(i));
    RandomGraphSettings settings;
    settings.ops = 4 + random.below(4);
    if (random.chance(0.5)) settings.reads = 2;
    const Graph graph = random_graph(random, settings);
    const auto curve = oracle::all_tradeoffs(graph, Order::given);
    std::vector<std::size_t> stages(graph.op_count());
    std::iota(stages.begin(), stages.end(), std::size_t{0});
    for (const oracle::Schedule& schedule : curve)
      for (const Bytes budget : {schedule.peak - Bytes(1), schedule.peak}) {
        if (budget < Bytes(0)) continue;
        CAPTURE(budget.count());
        const Problem problem{.graph = graph, .budget = budget, .order = Order::given};
        const std::vector<std::size_t> first = {random.below(stages.size())};
        solve::bounds::StageBranch branch(problem, stages, first);
        Limits limits({.work = 1'000'000});
        branch.run(Ticks(0), Ticks::max(), 1'000'000, limits);
        const auto best = oracle::least_duration(curve, budget);
        if (branch.infeasible()) CHECK(!best);
        if (!best) continue;
        CHECK(graph.total_time() + branch.bound() <= *best);
        budgets += *best > graph.total_time();
        proven += *best > graph.total_time() && graph.total_time() + branch.bound() == *best;
      }
  }
  MESSAGE(budgets << " budgets, " << proven << " proven");
  CHECK(proven > 0.7 * budgets);
}

TEST_CASE("bounds: a tensor that only a later stage needs may be made in every leaf") {
  const Graph graph =
      io::read_graph(std::string(LOWTIDE_SOURCE_DIR) + "/tests/solve/late_stage.graph.json").graph;
  const Problem problem{.graph = graph, .budget = Bytes(19), .order = Order::given};
  CHECK(run_solver(*solve::bounds::make_bounds(), problem).bound.duration <= Ticks(287));
}

// The extra time may exceed what the model counts to, and is no proof that nothing fits.
TEST_CASE("bounds: never above the optimum, for the largest times") {
  constexpr std::int64_t kHuge = (std::int64_t{1} << 61) - 1;
  // 0 is read at the end, and too large to be kept beside 1 and 2.
  for (const std::int64_t time : {kHuge, kHuge + 1, kHuge + 6}) {
    const Graph graph = Sketch({4, 4, 4, 1, 1})
                            .op({}, {0}, time)
                            .op({}, {1}, 1)
                            .op({1}, {2}, 1)
                            .op({2}, {3}, 1)
                            .op({0, 3}, {4}, 1)
                            .keep({4})
                            .graph();
    const auto curve = oracle::all_tradeoffs(graph, Order::given);
    for (const oracle::Schedule& schedule : curve)
      for (const std::string_view part : kParts) {
        CAPTURE(time);
        CAPTURE(part);
        const Problem problem{.graph = graph, .budget = schedule.peak, .order = Order::given};
        const Outcome outcome = run_solver(*solve::bounds::make_bounds(), problem, part);
        CHECK(outcome.status != Status::infeasible);
        CHECK(outcome.bound.peak <= schedule.peak);
        CHECK(outcome.bound.duration <= schedule.duration);
      }
  }
}

// The two below count what is proven, with the code that those above have run: where a sanitizer
// looks on, they have nothing to add.
TEST_CASE("bounds: whole runs over several cut points prove more than other relaxations" *
          doctest::skip(kSanitized)) {
  const auto tallies =
      sweep(Order::given, RandomGraphSettings::plain(0), 200 * test_scale(), 6'000'000);
  const Tally& stages = tallies[kParts.size() - 2];
  for (std::size_t part = 0; part + 2 < kParts.size(); ++part)
    CHECK(stages.proven > tallies[part].proven);
  CHECK(share(stages.proven, stages.budgets) > 0.9);
}

TEST_CASE("bounds: with a free order windows prove more than one cut point for skip connections" *
          doctest::skip(kSanitized)) {
  const Graph graph = generate("unet", 600, 3);
  const Problem problem{
      .graph = graph, .budget = Bytes(own_peak(graph).count() * 3 / 10), .order = Order::free};
  const auto overhead = [&](std::string_view options) {
    solve::ContextSettings settings;
    settings.limits.work = 300'000;
    const Outcome outcome =
        run_solver(*solve::bounds::make_bounds(), problem, options, std::move(settings));
    return (outcome.bound.duration - graph.total_time()).count();
  };
  CHECK(overhead("windows=on") * 100 > overhead("windows=off") * 105);
}

// Without, it was 16.21.
TEST_CASE("bounds: few selected cut points prove more than many spread ones" *
          doctest::skip(kSanitized)) {
  const Graph graph = generate("unet", 300, 3);
  const Problem problem{.graph = graph,
                        .budget = resolve_budget(parse_budget("act:35%"), graph),
                        .order = Order::given};
  solve::ContextSettings settings;
  settings.limits.work = 1'000'000;
  const Outcome outcome = run_solver(*solve::bounds::make_bounds(), problem,
                                     "branching=off stages=off gaps=off", std::move(settings));
  CHECK(overhead_percent(outcome.bound.duration, graph.total_time()) > 16.9);
}

TEST_CASE("bounds: strong enough to prove most small graphs" * doctest::skip(kSanitized)) {
  const int graphs = 200 * test_scale();
  const auto given = sweep(Order::given, RandomGraphSettings::plain(0), graphs, 2'000'000);
  report(given);
  CHECK(share(given.back().proven, given.back().budgets) > 0.9);
  CHECK(share(given.back().recognised, given.back().infeasible) > 0.8);
  const auto free = sweep(Order::free, RandomGraphSettings::plain(0), graphs, 3'000'000);
  report(free);
  CHECK(share(free.back().proven, free.back().budgets) > 0.55);
  CHECK(share(free.back().recognised, free.back().infeasible) > 0.75);
}

}  // namespace
}  // namespace lowtide
