// The bounds of problems with a machine: never above the truth where brute force knows it, nor
// above a plan that verifies where it does not.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/sim/verify.h"
#include "lowtide/solve/bounds/bounds.h"
#include "lowtide/solve/sequence/peak_floor.h"

#include "oracles/brute_force_transfers.h"
#include "solve/run_solver.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"
#include "support/swap_plan.h"

namespace lowtide {
namespace {

struct Tally {
  std::int64_t cases = 0, plans = 0, stalled = 0, met = 0;
};

// Ordinary ones, such that wait and move nothing, slow ones, and with one slow direction.
Machine any_machine(Random& random) {
  Machine machine = random_machine(random);
  const auto kind = random.below(8);
  if (kind == 0) machine.device_to_host.ticks = machine.host_to_device.ticks = Ticks(0);
  if (kind == 1) machine.device_to_host = {Ticks(0), Bytes(1), Ticks(20)};
  if (kind == 2) machine.host_to_device = {Ticks(0), Bytes(1), Ticks(20)};
  if (kind == 3) machine.device_to_host = machine.host_to_device = {Ticks(0), Bytes(7), Ticks(1)};
  return machine;
}

// Of each plan the cost, without those that another beats.
std::vector<Cost> costs_of(Random& random, const Graph& graph, Order order, const Machine& machine,
                           int plans, Tally& tally) {
  std::vector<Cost> costs;
  for (int i = 0; i < plans; ++i) {
    std::optional<Plan> plan;
    if (i % 4 == 0) {
      plan = random_plan(random, graph, {.order = order, .restless = random.uniform() * 0.6});
      plan->machine = machine;
    } else {
      plan = swap_plan(random, graph, order, machine);
    }
    if (!plan) continue;
    const Verdict verdict =
        verify({.graph = graph, .budget = Bytes::max(), .order = order, .machine = machine}, *plan);
    if (!verdict.ok) continue;
    ++tally.plans;
    costs.push_back(verdict.cost);
  }
  std::ranges::sort(costs, {},
                    [](const Cost& cost) { return std::pair(cost.peak, cost.duration); });
  std::vector<Cost> best;
  for (const Cost& cost : costs)
    if (best.empty() || cost.duration < best.back().duration) best.push_back(cost);
  return best;
}

void sweep(Order order, const RandomGraphSettings& base, int graphs, std::uint64_t seeds,
           Tally& tally) {
  const auto bounds = solve::bounds::make_bounds();
  for (int i = 0; i < graphs; ++i) {
    const std::uint64_t seed = seeds + static_cast<std::uint64_t>(i);
    CAPTURE(seed);
    Random random(seed);
    RandomGraphSettings settings = base;
    settings.ops = 3 + random.below(6);
    if (random.chance(0.4)) settings.reads = 2;
    const Graph graph = random_graph(random, settings);
    const Machine machine = any_machine(random);
    for (const Cost& cost : costs_of(random, graph, order, machine, 30, tally)) {
      CAPTURE(cost.peak.count());
      const Problem problem{
          .graph = graph, .budget = cost.peak, .order = order, .machine = machine};
      const Outcome outcome = run_solver(*bounds, problem);
      CHECK(outcome.bound.duration <= cost.duration);
      CHECK(outcome.bound.peak <= cost.peak);
      CHECK(outcome.status != Status::infeasible);
      CHECK(outcome.link_price.has_value());
      CHECK(outcome.link_price.value_or(0) >= 0);
      CHECK(outcome.link_price.value_or(0) <= 1);
      ++tally.cases;
      if (cost.duration == graph.total_time()) continue;
      ++tally.stalled;
      tally.met += outcome.bound.duration == cost.duration;
    }
  }
}

// What brute force settles in milliseconds.
constexpr std::size_t kMostTensors = 7;

// Against every schedule. `most` ops at most.
void settle(Order order, const RandomGraphSettings& base, std::size_t most, int graphs,
            std::uint64_t seeds, Tally& tally) {
  const auto bounds = solve::bounds::make_bounds();
  for (int i = 0; i < graphs; ++i) {
    const std::uint64_t seed = seeds + static_cast<std::uint64_t>(i);
    CAPTURE(seed);
    Random random(seed);
    RandomGraphSettings settings = base;
    settings.ops = 2 + random.below(most - 1);
    settings.inputs = 2;
    const Graph graph = random_graph(random, settings);
    if (graph.tensor_count() > kMostTensors) continue;
    const Machine machine = any_machine(random);
    const auto curve = oracle::all_tradeoffs(graph, {order, machine, std::nullopt});
    for (const oracle::Schedule& schedule : curve)
      for (const Bytes budget : {schedule.peak - Bytes(1), schedule.peak}) {
        if (budget < Bytes(0)) continue;
        CAPTURE(budget.count());
        const Problem problem{.graph = graph, .budget = budget, .order = order, .machine = machine};
        const Outcome outcome = run_solver(*bounds, problem);
        CHECK(by_itself(outcome.stopped_by));
        CHECK(outcome.bound.peak <= curve.back().peak);
        const auto best = oracle::least_duration(curve, budget);
        if (!best) continue;
        CHECK(outcome.bound.duration <= *best);
        CHECK(outcome.status != Status::infeasible);
        ++tally.cases;
        if (*best == graph.total_time()) continue;
        ++tally.stalled;
        tally.met += outcome.bound.duration == *best;
      }
  }
}

void report(const Tally& tally) {
  MESSAGE(tally.plans << " plans, " << tally.cases << " budgets, " << tally.stalled
                      << " with an overhead, " << tally.met << " of these met by the bound");
}

RandomGraphSettings rich() {
  RandomGraphSettings settings;
  settings.several_outputs = 0.3;
  settings.mutates = 0.15;
  settings.on_host = 0.2;
  return settings;
}

TEST_CASE("bounds: with a link, never above the optimum") {
  for (const Order order : {Order::given, Order::free}) {
    Tally tally;
    settle(order, rich(), 5, samples(300), order == Order::given ? 1'000'000'000 : 1'500'000'000,
           tally);
    report(tally);
    // The links of tiny graphs stall for single tensors, which no share of time sees.
    if (order == Order::given) CHECK(tally.met > 0.08 * static_cast<double>(tally.stalled));
  }
}

TEST_CASE("bounds: never above a plan with transfers, in the given order") {
  Tally tally;
  sweep(Order::given, rich(), samples(1500), 10'000'000, tally);
  report(tally);
}

TEST_CASE("bounds: never above a plan with transfers, with a free order") {
  Tally tally;
  sweep(Order::free, rich(), samples(1000), 2'000'000'000, tally);
  report(tally);
}

TEST_CASE("bounds: never above a plan with transfers, on plain graphs") {
  Tally tally;
  sweep(Order::given, RandomGraphSettings::plain(0), samples(1000), 4'000'000'000, tally);
  sweep(Order::free, RandomGraphSettings::plain(0), samples(500), 6'000'000'000, tally);
  report(tally);
}

TEST_CASE("bounds: never above a plan with transfers, for figures near the integer limits") {
  RandomGraphSettings settings = rich();
  settings.bytes = std::int64_t{1} << 43;
  settings.time = std::int64_t{1} << 52;
  settings.workspace = settings.bytes;
  Tally tally;
  sweep(Order::given, settings, samples(200), 8'000'000'000, tally);
  sweep(Order::free, settings, samples(200), 9'000'000'000, tally);
}

TEST_CASE("peak floor: a host budget raises it, never above the smallest peak") {
  RandomGraphSettings settings = rich();
  settings.in_place = 0.3;
  settings.inputs = 3;
  int raised = 0, met = 0;
  for (int i = 0; i < samples(600); ++i) {
    const auto seed = 11'000'000'000 + static_cast<std::uint64_t>(i);
    CAPTURE(seed);
    Random random(seed);
    settings.ops = 2 + random.below(3);
    const Graph graph = random_graph(random, settings);
    if (graph.tensor_count() > kMostTensors) continue;
    Bytes home, all;
    for (std::size_t k = 0; k < graph.tensor_count(); ++k) {
      all += graph.bytes(TensorId(k));
      if (graph.on_host(TensorId(k))) home += graph.bytes(TensorId(k));
    }
    const Bytes host = home + Bytes(random.between(0, (all - home).count() / 2));
    const Order order = random.chance(0.5) ? Order::given : Order::free;
    const Machine machine = any_machine(random);
    const auto curve = oracle::all_tradeoffs(graph, {order, machine, host});
    REQUIRE_FALSE(curve.empty());
    Problem problem{.graph = graph, .budget = Bytes::max(), .order = order, .machine = machine};
    const Bytes without = solve::peak_floor(problem);
    problem.host_budget = host;
    const Bytes floor = solve::peak_floor(problem);
    CHECK(floor <= curve.back().peak);
    CHECK(floor >= without);
    raised += floor > without;
    met += floor > without && floor == curve.back().peak;
  }
  MESSAGE(raised << " floors raised by the host budget, " << met << " of them the smallest peak");
  CHECK(raised > samples(600) / 30);
}

TEST_CASE("link bounds: a host budget that no plan can keep is proven so") {
  // Two inputs that the caller wants back, of which one can be away while the other is read.
  const auto graph = Sketch({10, 20, 1, 1}).op({0}, {2}, 3).op({1}, {3}, 4).keep({2, 3}).graph();
  Problem problem{.graph = graph, .budget = Bytes(32), .order = Order::given};
  problem.machine = {{Ticks(0), Bytes(1), Ticks(1)}, {Ticks(0), Bytes(1), Ticks(1)}};
  problem.host_budget = Bytes(0);
  CHECK(run_solver(*solve::bounds::make_bounds(), problem).status != Status::infeasible);
  problem.budget = Bytes(31);
  CHECK(run_solver(*solve::bounds::make_bounds(), problem).status == Status::infeasible);
}

TEST_CASE("link bounds: tensors at home on the host must be copied both ways") {
  // Two updates of a state each, over a link of a byte a tick.
  const auto graph = Sketch({10, 20})
                         .op({0}, {}, 3)
                         .mutates({0})
                         .op({1}, {}, 4)
                         .mutates({1})
                         .on_host({0, 1})
                         .graph();
  Problem problem{.graph = graph, .budget = Bytes(30), .order = Order::given};
  problem.machine = {{Ticks(0), Bytes(1), Ticks(1)}, {Ticks(0), Bytes(1), Ticks(1)}};
  const auto bounds = solve::bounds::make_bounds();
  // The second comes, is changed and goes: 20 + 4 + 20.
  CHECK(run_solver(*bounds, problem).bound.duration == Ticks(44));
  // The best plan brings both at once: 10 + 20 + 4 + 20.
  CHECK(oracle::fastest(graph, {Order::given, *problem.machine}, Bytes(30))->duration == Ticks(54));
}

}  // namespace
}  // namespace lowtide
