// `auto` has a plan wherever there is one: small graphs of every kind at the smallest budgets at
// which brute force finds a schedule, in both orders, under a clock and under a limit of work.
// LOWTIDE_TEST_SCALE=200 makes it a hundred thousand graphs.
#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"
#include "lowtide/solve/sequence/peak_floor.h"

#include "oracles/brute_force.h"
#include "solve/cases.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

constexpr std::int64_t kWork = 300'000;  // plenty for seven ops
constexpr double kSeconds = 10;          // what the command gives it

Graph tight_graph(Random& random) {
  const bool plain = random.chance(0.2);
  RandomGraphSettings settings = plain ? RandomGraphSettings::plain(0) : RandomGraphSettings{};
  settings.ops = 3 + random.below(5);
  settings.inputs = random.below(4);
  settings.reads = 1 + random.below(3);
  settings.window = 2 + random.below(6);
  if (random.chance(0.3)) {
    settings.zero_bytes = 0.3;
    settings.several_outputs = 0.4;
  }
  if (random.chance(0.3)) {
    settings.once = 0.3;
    settings.barrier = 0.15;
  }
  if (random.chance(0.3)) {
    settings.mutates = 0.3;
    settings.after = 0.25;
  }
  return random_graph(random, settings);
}

// Ends as soon as there is a plan: how good it becomes is not asked here.
Outcome first_answer(const solve::SolverTable& table, const Problem& problem,
                     driver::Request request) {
  CancelToken enough;
  request.limits.cancel = &enough;
  request.watcher = [&](const solve::Progress& progress) {
    if (progress.plan != nullptr) enough.cancel();
  };
  return driver::solve(table, problem, request).outcome;
}

void check_found(const solve::SolverTable& table, const Problem& problem, std::uint64_t seed,
                 bool clock) {
  driver::Request request;
  request.seed = seed;
  if (clock)
    request.limits.seconds = kSeconds;
  else
    request.limits.work = kWork;
  request.threads = 1 + static_cast<int>(seed / 2 % 2);
  CHECK(first_answer(table, problem, request).plan.has_value());
}

void check_graph(const solve::SolverTable& table, const Graph& graph, Order order,
                 std::uint64_t seed) {
  CAPTURE(to_string(order));
  Problem problem{.graph = graph, .budget = Bytes(0), .order = order};
  const Bytes leanest = oracle::smallest_peak(graph, order);
  for (const bool clock : {false, true}) {
    problem.budget = leanest + Bytes((seed % 2 == 0) == clock ? 0 : 1);
    CAPTURE(problem.budget.count());
    CAPTURE(clock);
    check_found(table, problem, seed, clock);
  }
  // Below it, to have ended by itself must be a proof.
  problem.budget = leanest - Bytes(1);
  if (problem.budget < solve::peak_floor(problem) || seed % 64 != 0) return;
  driver::Request request;
  request.seed = seed;
  request.limits.work = kWork;
  const Outcome outcome = driver::solve(table, problem, request).outcome;
  CHECK_FALSE(outcome.plan.has_value());
  CHECK(outcome.stopped_by ==
        (outcome.status == Status::infeasible ? StopReason::finished : StopReason::work_limit));
}

TEST_CASE("auto: finds a plan for the smallest budget of small graphs") {
  const solve::SolverTable table = driver::all_solvers();
  for (int i = 0; i < samples(500); ++i) {
    const auto seed = static_cast<std::uint64_t>(i) + 3'000'000;
    CAPTURE(seed);
    Random random(seed);
    const Graph graph = tight_graph(random);
    for (const Order order : {Order::free, Order::given}) check_graph(table, graph, order, seed);
  }
}

TEST_CASE("auto: finds a plan for the smallest budget of the fixed cases") {
  const solve::SolverTable table = driver::all_solvers();
  for (const Case& given : small_cases())
    for (const Order order : {Order::free, Order::given})
      for (const std::uint64_t seed : {0, 1}) {
        CAPTURE(given.name);
        check_graph(table, given.graph, order, seed);
      }
}

}  // namespace
}  // namespace lowtide
