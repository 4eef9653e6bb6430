// Limits of what is live during single ops: the problem without them asks the same, brute force
// agrees with what is answered, and what is told of peaks is true of the graph asked about.
#include "lowtide/driver/live_limits.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/driver.h"
#include "lowtide/plan/plan_file.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "oracles/brute_force.h"
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
  settings.several_outputs = 0.3;
  return random_graph(random, settings);
}

Question limited(Random& random, const Graph& graph) {
  const std::int64_t own = own_peak(graph).count();
  Question question{{.graph = graph, .budget = Bytes(random.between(0, own + 4))}};
  question.problem.order = random.chance(0.5) ? Order::given : Order::free;
  for (std::size_t limits = 1 + random.below(3); limits > 0; --limits)
    question.live_limits.push_back(
        {OpId(random.below(graph.op_count())), Bytes(random.between(own / 3, own + 4))});
  return question;
}

TEST_CASE("live limits: a plan keeps budget and limits exactly if it keeps the reduced budget") {
  int kept = 0, refused = 0;
  for (int i = 0; i < samples(300); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = small_graph(random, 3 + random.below(12));
    Question question = limited(random, graph);
    Problem& problem = question.problem;
    if (random.chance(0.1)) problem.budget = Bytes::max();
    const driver::LiveLimitReduction reduction(problem, question.live_limits);
    CHECK(reduction.problem().graph.total_time() == graph.total_time());
    for (int k = 0; k < 10; ++k) {
      const Plan plan = random_plan(random, graph, {.order = problem.order, .transfers = false});
      const Verdict verdict = verify(question, plan);
      CHECK(verdict.ok == verify(reduction.problem(), plan).ok);
      (verdict.ok ? kept : refused) += 1;
    }
  }
  CHECK((kSanitized || kept > samples(30)));
  CHECK(refused > samples(100));
}

// Everything that is said of an answer to a problem with limits.
void check_answer(const Question& question, const Outcome& outcome) {
  const Problem& problem = question.problem;
  const Cost own = simulate(problem.graph, own_plan(problem.graph)).cost;
  if (outcome.plan) {
    CHECK(verify(question, *outcome.plan).ok);
    CHECK(outcome.cost == simulate(problem.graph, *outcome.plan).cost);
    REQUIRE_FALSE(outcome.history.empty());
    CHECK(outcome.history.back().cost == outcome.cost);
    REQUIRE(outcome.smallest_peak);
    CHECK(*outcome.smallest_peak <= outcome.cost.peak);
  }
  for (const Incumbent& entry : outcome.history) CHECK(entry.cost.peak <= problem.budget);
  // What no plan goes below, no plan of brute force does, nor the graph's own.
  CHECK(outcome.bound.peak <= own.peak);
  CHECK(outcome.bound.peak <= oracle::smallest_peak(problem.graph, problem.order));
  if (outcome.status == Status::infeasible && outcome.bound.peak <= problem.budget)
    CHECK(outcome.note.find("limits") != std::string::npos);
  // A file knows no limits, and claims nothing that is true under them alone.
  const PlanVerdict verdict = check_plan(problem.graph, plan_file(question, outcome, {}));
  CHECK_MESSAGE(verdict.kind == PlanVerdict::Kind::holds, verdict.reason);
}

TEST_CASE("live limits: plans and proofs agree with brute force") {
  int tighter = 0, optimal = 0;
  for (int i = 0; i < samples(60); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i) + 1000);
    const Graph graph = small_graph(random, 3 + random.below(4));
    const Question question = limited(random, graph);
    const Problem& problem = question.problem;
    const driver::LiveLimitReduction reduction(problem, question.live_limits);
    const Problem& plain = reduction.problem();
    const auto best = oracle::fastest(plain.graph, plain.order, plain.budget);
    const auto freer = oracle::fastest(graph, problem.order, problem.budget);
    tighter += freer.has_value() && (!best || best->duration > freer->duration) ? 1 : 0;
    driver::Request request;
    request.limits.work = 20'000;
    request.watcher = [&](const solve::Progress& now) {
      if (now.plan != nullptr) CHECK(now.cost == simulate(graph, *now.plan).cost);
    };
    for (const char* solver : {"auto", "greedy", "search"}) {
      CAPTURE(solver);
      request.solver = solver;
      const Outcome outcome = driver::solve(driver::all_solvers(), question, request).outcome;
      check_answer(question, outcome);
      if (outcome.plan) {
        REQUIRE(best);
        CHECK(outcome.cost.duration >= best->duration);
        CHECK(outcome.bound.duration <= best->duration);
      }
      if (outcome.status == Status::infeasible) CHECK_FALSE(best);
      if (outcome.status == Status::optimal) {
        CHECK(outcome.cost.duration == best->duration);
        ++optimal;
      }
    }
  }
  CHECK(tighter > 0);
  CHECK(optimal > samples(5));
}

// Tensor 1 waits for the last op while ops 1 and 2 run.
Graph waiting() {
  return Sketch({1, 8, 1, 9, 1})
      .op({0}, {1}, 5)
      .op({0}, {2}, 1)
      .op({2}, {3}, 1)
      .op({1, 3}, {4}, 1)
      .keep({4})
      .graph();
}

TEST_CASE("live limits: a binding limit forces a recomputation, and peaks are unchanged") {
  const Graph graph = waiting();
  driver::Request request;
  request.limits.work = 5000;
  Question question{{.graph = graph, .budget = Bytes(24), .order = Order::given}};
  const auto answer = [&] {
    return driver::solve(driver::all_solvers(), question, request).outcome;
  };
  const Outcome freely = answer();
  REQUIRE(freely.plan);
  CHECK(freely.cost.duration == graph.total_time());
  // The input and tensors 1 and 2 are live during op 1.
  question.live_limits = {{OpId(1), Bytes(10)}};
  CHECK(answer().cost.duration == graph.total_time());
  question.live_limits = {{OpId(1), Bytes(9)}};
  const Outcome tight = answer();
  REQUIRE(tight.plan);
  CHECK(tight.cost.duration == graph.total_time() + Ticks(5));
  CHECK(tight.cost.peak == simulate(graph, *tight.plan).cost.peak);
  CHECK_FALSE(verify(question, *freely.plan).ok);
  CHECK(verify(question, *freely.plan).violation->reason.find("limit") != std::string::npos);
  // What the file says is true without the limit too: no proof that 5 ticks must be lost.
  const PlanFile file = plan_file(question, tight, {});
  CHECK(file.claims.status == Status::feasible);
  CHECK(file.claims.bound == graph.total_time());
  // The op's own tensors alone are beyond this.
  question.live_limits = {{OpId(1), Bytes(1)}};
  const Outcome none = answer();
  CHECK(none.status == Status::infeasible);
  CHECK(none.bound.peak <= question.problem.budget);
  CHECK(none.note.find("limits") != std::string::npos);
}

TEST_CASE(
    "live limits: the smallest limit of an op counts, and one above the budget changes nothing") {
  const Graph graph = waiting();
  const Problem problem{.graph = graph, .budget = Bytes(20)};
  const std::vector<LiveLimit> limits = {
      {OpId(1), Bytes(12)}, {OpId(1), Bytes(9)}, {OpId(1), Bytes(15)}, {OpId(2), Bytes(21)}};
  const driver::LiveLimitReduction reduction(problem, limits);
  CHECK(reduction.problem().graph.workspace(OpId(1)) == Bytes(11));
  CHECK(reduction.problem().graph.workspace(OpId(2)) == Bytes(0));
}

TEST_CASE("live limits: invalid limits are refused with their place") {
  const Graph graph = waiting();
  const auto place = [&](std::vector<LiveLimit> limits, Objective objective) {
    const Question question{
        .problem = {.graph = graph, .budget = Bytes(20), .objective = objective},
        .live_limits = std::move(limits)};
    try {
      driver::solve(driver::all_solvers(), question, {});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const LiveLimit fine{OpId(1), Bytes(3)};
  const auto begins = [](const std::string& text, std::string_view with) {
    return text.find(with) != std::string::npos;
  };
  CHECK(begins(place({fine, {OpId(4), Bytes(3)}}, Objective::least_time), "live_limits/1"));
  CHECK(begins(place({{OpId(), Bytes(3)}}, Objective::least_time), "live_limits/0"));
  CHECK(begins(place({{OpId(0), Bytes(-1)}}, Objective::least_time), "negative"));
  CHECK(begins(place({fine}, Objective::least_memory), "least time"));
}

}  // namespace
}  // namespace lowtide
