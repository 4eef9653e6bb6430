// Graphs with network ops: every solver's answer is verified with the network lane, and what it
// proves is held against brute force.
#include <doctest/doctest.h>

#include "lowtide/driver/curve.h"
#include "lowtide/driver/driver.h"
#include "lowtide/driver/fit.h"
#include "lowtide/driver/network_bound.h"
#include "lowtide/driver/network_reduction.h"
#include "lowtide/plan/plan_file.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "oracles/brute_force_transfers.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/random_plan.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

Graph small_graph(Random& random, std::size_t ops) {
  RandomGraphSettings settings;
  settings.ops = ops;
  settings.inputs = 2;
  settings.several_outputs = 0.1;
  settings.network = 0.4;
  settings.once = random.chance(0.5) ? 0.12 : 1;
  return random_graph(random, settings);
}

driver::Request by_work(std::int64_t work, std::string solver = "auto") {
  driver::Request request;
  request.solver = std::move(solver);
  request.limits.work = work;
  return request;
}

// Everything that is said of an answer, against all tradeoffs of the graph.
void check_answer(const Question& question, const Outcome& outcome,
                  const std::vector<oracle::Schedule>& curve) {
  const Problem& problem = question.problem;
  const auto best = oracle::least_duration(curve, problem.budget);
  if (outcome.plan) {
    CHECK(verify(question, *outcome.plan).ok);
    CHECK(outcome.cost == simulate(problem.graph, *outcome.plan).cost);
    REQUIRE_FALSE(outcome.history.empty());
    CHECK(outcome.history.back().cost == outcome.cost);
    REQUIRE(best);
    CHECK(outcome.cost.duration >= *best);
    CHECK(check_plan(problem.graph, plan_file(question, outcome, {})).kind ==
          PlanVerdict::Kind::holds);
  }
  if (best) {
    CHECK(outcome.bound.duration <= *best);
    CHECK(outcome.status != Status::infeasible);
    if (outcome.status == Status::optimal) CHECK(outcome.cost.duration == *best);
  } else {
    CHECK_FALSE(outcome.plan);
  }
  CHECK(outcome.bound.peak <= curve.back().peak);
}

TEST_CASE("network ops: the bound holds for brute force, and is that of the lanes at the least") {
  int tight = 0;
  for (int seed = 0; seed < samples(200); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    const Graph graph = small_graph(random, 2 + random.below(5));
    if (graph.tensor_count() > 9) continue;
    const Order order = random.chance(0.5) ? Order::given : Order::free;
    const auto curve = oracle::all_tradeoffs(graph, oracle::no_link(order));
    REQUIRE_FALSE(curve.empty());
    const Ticks bound = driver::network_bound(graph, order);
    CHECK(bound >= graph.least_time());
    CHECK(bound <= curve.front().duration);
    tight += bound == curve.front().duration ? 1 : 0;
  }
  CHECK((kSanitized || tight > samples(50)));
}

TEST_CASE("network ops: heads and tails are part of the bound") {
  // gather 40, then 100 of computing that needs it, then 30 on the network
  const Graph graph = Sketch({1, 1, 1})
                          .op({}, {0}, 40)
                          .network()
                          .op({0}, {1}, 100)
                          .op({1}, {2}, 30)
                          .network()
                          .keep({2})
                          .graph();
  CHECK(graph.least_time() == Ticks(100));
  CHECK(driver::network_bound(graph, Order::free) == Ticks(170));
}

TEST_CASE("network ops: every solver's plan holds, and what is proven is true") {
  const solve::SolverTable solvers = driver::all_solvers();
  int optimal = 0;
  for (int seed = 0; seed < samples(60); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 1000);
    const Graph graph = small_graph(random, 2 + random.below(5));
    if (graph.tensor_count() > 9) continue;
    const Order order = random.chance(0.5) ? Order::given : Order::free;
    const auto curve = oracle::all_tradeoffs(graph, oracle::no_link(order));
    const auto& point = curve[random.below(curve.size())];
    for (const auto& solver : solvers.all()) {
      if (solver->traits().has(solve::Trait::external)) continue;
      CAPTURE(solver->name());
      Question question{{.graph = graph, .budget = point.peak, .order = order}};
      if (random.chance(0.2)) question.problem.budget -= Bytes(1);
      if (random.chance(0.2)) question.problem.objective = Objective::least_memory;
      if (random.chance(0.2) && question.problem.objective == Objective::least_time)
        question.live_limits.push_back({OpId(random.below(graph.op_count())), point.peak});
      driver::Request request = by_work(20'000, std::string(solver->name()));
      request.starts = {random_plan(random, graph, {.order = order, .transfers = false})};
      const driver::Answer answer = driver::solve(solvers, question, request);
      if (question.problem.objective == Objective::least_time)
        check_answer(question, answer.outcome, curve);
      else if (answer.outcome.plan)
        CHECK(verify(question, *answer.outcome.plan).ok);
      optimal += answer.outcome.status == Status::optimal ? 1 : 0;
    }
  }
  CHECK((kSanitized || optimal > samples(50)));
}

TEST_CASE("network ops: over a link to the host as well") {
  const solve::SolverTable solvers = driver::all_solvers();
  for (int seed = 0; seed < samples(30); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 2000);
    const Graph graph = small_graph(random, 2 + random.below(4));
    if (graph.tensor_count() > 8) continue;
    const oracle::Link link{Order::free, random_machine(random)};
    const auto curve = oracle::all_tradeoffs(graph, link);
    const auto& point = curve[random.below(curve.size())];
    const Question question{{.graph = graph, .budget = point.peak, .machine = link.machine}};
    const driver::Answer answer = driver::solve(solvers, question, by_work(30'000));
    check_answer(question, answer.outcome, curve);
  }
}

TEST_CASE("network ops: a wait for the host within a network op is no bound on the computing") {
  // In the given order a network op waits for its input from the host; the computing goes on.
  const Graph graph = Sketch({40, 4, 4, 4})
                          .op({0}, {1}, 1)
                          .network()
                          .once()
                          .op({}, {2}, 100)
                          .op({1, 2}, {3}, 1)
                          .on_host({0})
                          .keep({3})
                          .graph();
  const Link link{.latency = Ticks(0), .bytes = Bytes(1), .ticks = Ticks(2)};
  const Machine machine{link, link};
  const auto curve = oracle::all_tradeoffs(graph, {Order::given, machine});
  REQUIRE(curve.front().duration == Ticks(101));
  const solve::SolverTable solvers = driver::all_solvers();
  for (const auto& solver : solvers.all()) {
    if (solver->traits().has(solve::Trait::external)) continue;
    CAPTURE(solver->name());
    const Question question{
        {.graph = graph, .budget = Bytes::max(), .order = Order::given, .machine = machine}};
    const driver::Answer answer =
        driver::solve(solvers, question, by_work(20'000, std::string(solver->name())));
    check_answer(question, answer.outcome, curve);
  }
}

TEST_CASE("network ops: a plan that is the shortest on both lanes is proven so") {
  // Two gathers, each before its own computing: the second is hidden behind the first's.
  const Graph graph = Sketch({4, 8, 1, 4, 8, 1})
                          .op({0}, {1}, 40)
                          .network()
                          .once()
                          .op({1}, {2}, 100)
                          .op({3}, {4}, 40)
                          .network()
                          .once()
                          .op({2, 4}, {5}, 100)
                          .keep({5})
                          .graph();
  CHECK(own_duration(graph) == Ticks(280));
  const Question question{{.graph = graph, .budget = Bytes::max()}};
  const driver::Answer answer = driver::solve(driver::all_solvers(), question, by_work(30'000));
  CHECK(answer.outcome.cost.duration <= Ticks(280));
  CHECK(answer.outcome.bound.duration == Ticks(240));
}

TEST_CASE("network ops: curves and fits are relative to the given order on its lanes") {
  for (int seed = 0; seed < samples(6); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed) + 3000);
    RandomGraphSettings settings;
    settings.ops = 12;
    settings.network = 0.4;
    const Graph graph = random_graph(random, settings);
    driver::FitRequest request;
    request.time_limit = own_duration(graph);
    request.settings.limits.work = 30'000;
    const Fit fit = driver::fit(driver::all_solvers(), graph, request);
    REQUIRE(fit.point);
    CHECK(fit.point->outcome.cost.duration <= own_duration(graph));
    driver::CurveRequest curve;
    curve.settings.limits.work = 50'000;
    for (const TradeoffPoint& point : driver::curve(driver::all_solvers(), graph, curve).points)
      if (point.outcome.plan) {
        CHECK(point.outcome.cost == simulate(graph, *point.outcome.plan).cost);
        CHECK(point.outcome.bound.duration <= point.outcome.cost.duration);
      }
  }
}

}  // namespace
}  // namespace lowtide
