// Reductions: a stack applies them in order and undoes them in reverse, and every plan is verified
// once for each graph.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/driver/driver.h"
#include "lowtide/driver/reduction_stack.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/network.h"
#include "support/print.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

// Leaves its letter in whatever passes it, and keeps start plans of at least so many steps.
class Marking final : public driver::Reduction {
 public:
  Marking(const Problem& original, char letter, std::size_t least)
      : problem_(original), letter_(letter), least_(least) {
    problem_.budget += Bytes(1);
  }
  const Problem& problem() const override { return problem_; }
  std::vector<Plan> starts(std::vector<Plan> plans) const override {
    std::erase_if(plans, [&](const Plan& plan) { return plan.steps.size() < least_; });
    for (Plan& plan : plans) plan.steps.push_back(Step::compute(OpId(0)));
    return plans;
  }
  solve::Watcher translate(solve::Watcher watcher) override {
    return [this, watcher = std::move(watcher)](solve::Progress progress) {
      const std::string solver = std::string(progress.solver) + letter_;
      progress.solver = solver;
      watcher(progress);
    };
  }
  void bring_back(driver::Answer& answer) const override { answer.outcome.note += letter_; }

 private:
  Problem problem_;
  char letter_;
  std::size_t least_;
};

TEST_CASE("reductions: applied in order, undone in reverse order") {
  const Graph graph = Sketch({1, 2}).op({0}, {1}, 3).keep({1}).graph();
  const Problem original{.graph = graph, .budget = Bytes(10)};
  driver::ReductionStack stack(original);
  CHECK(&stack.problem() == &original);
  for (const auto& [letter, least] : {std::pair('a', 1u), std::pair('b', 3u), std::pair('c', 0u)})
    stack.push(std::make_unique<Marking>(stack.problem(), letter, least));
  CHECK(stack.problem().budget == Bytes(13));
  CHECK_FALSE(stack.is_graph_reduced());

  driver::Answer answer;
  stack.bring_back(answer);
  CHECK(answer.outcome.note == "cba");

  std::string seen;
  const solve::Watcher watcher =
      stack.translate([&](const solve::Progress& progress) { seen = progress.solver; });
  watcher({});
  CHECK(seen == "cba");

  // Each reduction gets the starts that the one before it has made.
  std::vector<Plan> plans(3);
  plans[1].steps.assign(1, Step::compute(OpId(0)));
  plans[2].steps.assign(2, Step::compute(OpId(0)));
  const std::vector<Plan> starts = stack.starts(plans);
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].steps.size() == 5);
}

// A step with everything to reduce: a hoist, ops that may not be computed again, and a limit.
struct Everything {
  Graph graph = step_of({.batch = 96, .widths = {4, 16, 16, 12}});
  std::vector<Transform> transforms = {hoist_of(graph)};
  TransformedGraph transformed = apply_transforms(graph, transforms);
  Question question{{.graph = graph, .budget = own_peak(transformed.graph)}};

  Everything() {
    question.problem.techniques = parse_techniques("in_place,hoist", false);
    question.transforms = transforms;
    for (const OpId op : graph.order())
      if (graph.is_barrier(op)) question.live_limits = {{op, question.problem.budget - Bytes(1)}};
  }
  Plan start() const {
    return on_original(transformed, transforms,
                       plan_from_sequence(transformed.graph, transformed.graph.order()));
  }
};

TEST_CASE("reductions: the solver gets the reduced problem") {
  const Everything all;
  const driver::ReductionStack stack = driver::reductions_for(all.question);
  const Problem& reduced = stack.problem();
  CHECK(stack.is_graph_reduced());
  CHECK(reduced.graph.op_count() == all.transformed.graph.op_count());
  for (const OpId op : reduced.graph.order()) CHECK_FALSE(reduced.graph.recomputable(op));
  const std::vector<Plan> starts = stack.starts({own_plan(all.graph), all.start()});
  REQUIRE(starts.size() == 1);  // the graph's own plan has no hoist
  CHECK(starts[0].transforms.empty());
  CHECK(verify(reduced, starts[0]).ok == verify(all.question, all.start()).ok);
}

TEST_CASE("reductions: without a reduction the solver gets the same graph") {
  const Graph graph = Sketch({1, 2}).op({0}, {1}, 3).keep({1}).graph();
  const Question question{{.graph = graph, .budget = Bytes(10)}};
  CHECK_FALSE(driver::reductions_for(question).is_graph_reduced());
}

TEST_CASE("reductions: progress and answers are of the original problem") {
  const Everything all;
  for (const char* solver : {"auto", "greedy", "search"}) {
    CAPTURE(solver);
    driver::Request request;
    request.solver = solver;
    request.limits.work = 50'000;
    request.starts = {all.start(), own_plan(all.graph)};
    int plans = 0;
    request.watcher = [&](const solve::Progress& progress) {
      if (progress.plan == nullptr) return;
      ++plans;
      const Verdict verdict = verify(all.question, *progress.plan);
      CHECK(verdict.ok);
      CHECK(verdict.cost == progress.cost);
      CHECK(progress.bound.peak <= progress.cost.peak);
    };
    const driver::Answer answer = driver::solve(driver::all_solvers(), all.question, request);
    REQUIRE(answer.outcome.plan);
    CHECK(plans > 0);
    CHECK(verify(all.question, *answer.outcome.plan).cost == answer.outcome.cost);
    CHECK(answer.outcome.history.back().cost == answer.outcome.cost);
  }
}

// A portfolio that offers the plan of the given order, whatever the budget.
class Given final : public solve::Solver {
 public:
  explicit Given(const Graph& original) : original_(original) {}
  std::string_view name() const override { return "given order"; }
  std::string_view summary() const override { return "the plan of the given order"; }
  solve::Traits traits() const override { return {solve::Trait::portfolio}; }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem& problem, solve::Context& context) const override {
    context.limits().spend(1000);
    context.offer(own_plan(problem.graph));
    if (context.has_plan() && &problem.graph != &original_) ++plans_of_others;
    return context.finish();
  }

  mutable int plans_of_others = 0;  // of graphs that are not the original one

 private:
  const Graph& original_;
};

TEST_CASE("reductions: a plan is verified once for each graph") {
  const Graph graph = step_of({.batch = 96, .widths = {4, 16, 16, 12}});
  Question question{{.graph = graph, .budget = Bytes::max()}};
  Problem& problem = question.problem;
  solve::SolverTable table;
  auto added = std::make_unique<Given>(graph);
  const Given& given = *added;
  table.add(std::move(added));
  driver::Request request;
  request.solver = "given order";
  request.limits.work = 100'000;
  const auto verifications = [&] {
    given.plans_of_others = 0;
    const driver::Answer answer = driver::solve(table, question, request);
    REQUIRE(answer.outcome.plan);
    return answer.verifications;
  };
  CHECK(verifications() == 1);
  problem.techniques.offload = false;  // changes no graph
  CHECK(verifications() == 1);
  problem.techniques.recompute = false;
  CHECK(verifications() == 2);
  question.live_limits = {{OpId(0), own_peak(graph)}};
  CHECK(verifications() == 2);
  problem.techniques.hoist = true;
  question.transforms = {hoist_of(graph)};
  question.live_limits.clear();
  CHECK(verifications() == 2);

  // Of a search for transforms: the plan of each trial on another graph, and the answer.
  question.transforms.clear();
  problem.techniques = parse_techniques("default,split,hoist", false);
  problem.budget = Bytes(own_peak(graph).count() * 9 / 10);
  const int verified = verifications();
  CHECK(verified == given.plans_of_others + 1);
  CHECK(given.plans_of_others > 0);
}

TEST_CASE("reductions: without recomputation a start plan that recomputes is dropped") {
  const Graph graph = Sketch({1, 2, 3}).op({0}, {1}, 3).op({1}, {2}, 3).keep({2}).graph();
  Plan twice;
  twice.steps = {Step::compute(OpId(0)), Step::free(TensorId(1)), Step::compute(OpId(0)),
                 Step::compute(OpId(1)), Step::free(TensorId(1))};
  Problem problem{.graph = graph, .budget = Bytes(20)};
  driver::Request request;
  request.solver = "greedy";
  request.limits.work = 0;
  request.starts = {twice};
  const auto history = [&] {
    return driver::solve(driver::all_solvers(), problem, request).outcome.history;
  };
  REQUIRE(verify(problem, twice).ok);
  REQUIRE_FALSE(history().empty());
  CHECK(history().front().cost.duration == Ticks(9));
  problem.techniques.recompute = false;
  for (const Incumbent& incumbent : history()) CHECK(incumbent.cost.duration == Ticks(6));
}

TEST_CASE("reductions: a start plan over another link is a start plan, whatever the techniques") {
  const Graph graph = step_of({.batch = 8, .widths = {4, 16, 16, 12}});
  const Link slow{Ticks(9), Bytes(1), Ticks(1)}, fast{Ticks(1), Bytes(4), Ticks(1)};
  Plan start = own_plan(graph);
  start.machine = Machine{slow, slow};
  driver::Request request;
  request.limits.work = 20'000;
  request.starts = {start};
  Problem problem{.graph = graph, .budget = own_peak(graph), .machine = Machine{fast, fast}};
  for (const char* list : {"in_place", "recompute", "recompute,split", "recompute,offload"})
    for (const char* solver : {"auto", "greedy", "search"}) {
      CAPTURE(list);
      CAPTURE(solver);
      request.solver = solver;
      problem.techniques = parse_techniques(list, true);
      CHECK(driver::solve(driver::all_solvers(), problem, request).outcome.plan);
    }
}

}  // namespace
}  // namespace lowtide
