// Problems with transforms: solvers plan the graph that is made, answers are of the one asked
// about.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/driver.h"
#include "lowtide/driver/transform_search.h"
#include "lowtide/plan/plan_file.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "support/by_work.h"
#include "support/network.h"
#include "support/scale.h"

namespace lowtide {
namespace {

struct Asked {
  Graph graph = step_of({.batch = 96, .widths = {4, 16, 16, 12}});
  Question question{{.graph = graph, .budget = Bytes::max()}};

  Asked() {
    question.problem.techniques = parse_techniques("default,split,hoist", false);
    question.transforms = {hoist_of(graph)};
    const TransformedGraph hoisted = apply_transforms(graph, question.transforms);
    question.transforms.emplace_back(split_along(hoisted, {{TensorId(0), 0}}, 3));
    question.problem.budget = own_peak(apply_transforms(graph, question.transforms).graph);
  }
};

driver::Request by(const std::string& solver) { return by_work(200'000, solver); }

TEST_CASE("transforms: every kind of solver plans the transformed graph") {
  const Asked asked;
  const solve::SolverTable solvers = driver::all_solvers();
  CHECK(asked.question.problem.budget < own_peak(asked.graph));
  for (const char* solver : {"auto", "greedy", "search", "order"}) {
    CAPTURE(solver);
    const driver::Answer answer = driver::solve(solvers, asked.question, by(solver));
    REQUIRE(answer.outcome.plan);
    CHECK(answer.outcome.plan->transforms == asked.question.transforms);
    CHECK(verify(asked.question, *answer.outcome.plan).ok);
    const PlanFile file = plan_file(asked.question, answer.outcome, {});
    CHECK(file.claims.bound_scope == BoundScope::graph);
    CHECK(check_plan(asked.graph, file).reason == "");
  }
}

TEST_CASE(
    "transforms: start plans with the same transforms are used; watchers see the original graph") {
  const Asked asked;
  const solve::SolverTable solvers = driver::all_solvers();
  const TransformedGraph made = apply_transforms(asked.graph, asked.question.transforms);
  const Plan start = on_original(made, asked.question.transforms,
                                 plan_from_sequence(made.graph, made.graph.order()));
  driver::Request request = by("search");
  request.limits.work = 1;
  request.starts = {start, own_plan(asked.graph)};
  int told = 0;
  request.watcher = [&](const solve::Progress& now) {
    if (now.plan == nullptr) return;
    ++told;
    CHECK(now.plan->transforms == asked.question.transforms);
    CHECK(verify(asked.question, *now.plan).cost == now.cost);
  };
  const driver::Answer answer = driver::solve(solvers, asked.question, request);
  REQUIRE(answer.outcome.plan);
  CHECK(answer.outcome.cost.duration <= simulate(asked.graph, start).cost.duration);
  CHECK(told > 0);
}

TEST_CASE("transforms: forbidden or illegal ones are refused before a solver runs") {
  Asked asked;
  const solve::SolverTable solvers = driver::all_solvers();
  asked.question.problem.techniques.hoist = false;
  CHECK_THROWS_AS(driver::solve(solvers, asked.question, by("greedy")), InputError);
  asked.question.problem.techniques.hoist = true;
  std::swap(asked.question.transforms[0], asked.question.transforms[1]);
  CHECK_THROWS_AS(driver::solve(solvers, asked.question, by("greedy")), TransformRefused);
}

TEST_CASE("transforms: live limits of remaining ops stay, those of removed ops are refused") {
  Asked asked;
  const solve::SolverTable solvers = driver::all_solvers();
  OpId barrier;
  for (const OpId op : asked.graph.order())
    if (asked.graph.is_barrier(op)) barrier = op;
  asked.question.live_limits = {{barrier, asked.question.problem.budget}};
  const driver::Answer answer = driver::solve(solvers, asked.question, by("greedy"));
  REQUIRE(answer.outcome.plan);
  CHECK(verify(asked.question, *answer.outcome.plan).ok);
  asked.question.live_limits = {{OpId(0), asked.question.problem.budget}};
  CHECK_THROWS_AS(driver::solve(solvers, asked.question, by("greedy")), InputError);
}

TEST_CASE("transforms: auto finds some for a budget that needs them") {
  const Graph graph = step_of({.batch = 96, .widths = {4, 16, 16, 12}});
  const solve::SolverTable solvers = driver::all_solvers();
  Problem problem{.graph = graph, .budget = Bytes(0)};
  const auto least = [&](std::string_view techniques) {
    problem.techniques = parse_techniques(techniques, false);
    // What is live throughout, and so little more that nothing fits.
    problem.budget = graph.input_bytes();
    const driver::Answer answer = driver::solve(solvers, problem, by("auto"));
    CHECK(!answer.outcome.plan);
    if (techniques != "default") {
      // What is proven of the graph as it is holds no more.
      CHECK(answer.outcome.status == Status::unknown);
      CHECK(answer.outcome.bound.peak <= graph.input_bytes());
    }
    return *answer.outcome.smallest_peak;
  };
  const Bytes without = least("default"), with = least("default,split,hoist");
  CHECK(with < without);

  problem.budget = with + Bytes((without - with).count() / 2);
  problem.techniques = parse_techniques("default", false);
  CHECK(!driver::solve(solvers, problem, by("auto")).outcome.plan);
  problem.techniques = parse_techniques("default,split,hoist", false);
  const driver::Answer found = driver::solve(solvers, problem, by("auto"));
  REQUIRE(found.outcome.plan);
  CHECK(!found.outcome.plan->transforms.empty());
  CHECK(verify(problem, *found.outcome.plan).ok);
  CHECK(found.outcome.bound.duration <= found.outcome.cost.duration);
}

TEST_CASE(
    "transforms: the reason why the search was cut short is reported, with or without a plan") {
  const Graph graph = step_of({.batch = 96, .widths = {4, 16, 16, 12}});
  const solve::SolverTable solvers = driver::all_solvers();
  CancelToken cancel;
  cancel.cancel();
  for (const bool cancelled : {false, true}) {
    for (const Bytes budget : {graph.input_bytes(), Bytes(own_peak(graph).count() * 6 / 10)}) {
      CAPTURE(budget.count());
      Problem problem{.graph = graph, .budget = budget};
      problem.techniques = parse_techniques("all", false);
      driver::Request request = by("auto");
      request.limits = {
          .seconds = std::nullopt, .work = 3000, .cancel = cancelled ? &cancel : nullptr};
      const driver::Answer answer = driver::solve(solvers, problem, request);
      CHECK(answer.outcome.stopped_by ==
            (cancelled ? StopReason::cancelled : StopReason::work_limit));
    }
  }
}

TEST_CASE("transforms: tensors at home on the host do not count in the floor") {
  Network net;
  const auto x = net.tensor({8, 4}), a = net.tensor({8, 4}), b = net.tensor({8, 4}),
             state = net.tensor({800, 4}, "f32", Role::state);
  net.at(state).stays = true;
  net.at(state).home = Home::host;
  net.op("aten.relu", {net.whole("self", x)}, {a});
  net.op("aten.relu", {net.whole("self", a)}, {b});
  net.keep(b);
  const Graph graph = net.graph();
  Problem problem{.graph = graph, .budget = Bytes(8)};
  problem.machine = Machine{{Ticks(1), Bytes(1), Ticks(1)}, {Ticks(1), Bytes(1), Ticks(1)}};
  problem.techniques = parse_techniques("all", true);
  const auto bound = [&](Bytes budget) {
    problem.budget = budget;
    return driver::solve(driver::all_solvers(), problem, by("auto")).outcome;
  };
  CHECK(bound(Bytes(384)).plan);
  CHECK(bound(Bytes(64)).bound.peak <= Bytes(128));
}

TEST_CASE("transforms: auto's choice repeats with a work limit, and makes no plan worse") {
  const solve::SolverTable solvers = driver::all_solvers();
  for (std::uint64_t seed = 0; seed < (kSanitized ? 2 : 6); ++seed) {
    Random random(seed);
    const Graph graph = step_of(Classifier::random(random));
    Problem problem{.graph = graph, .budget = Bytes(own_peak(graph).count() * 8 / 10)};
    const auto solved = [&](std::string_view techniques, int threads, std::int64_t work) {
      problem.techniques = parse_techniques(techniques, false);
      driver::Request request = by("auto");
      request.threads = threads;
      request.limits.work = work;
      return driver::solve(solvers, problem, request);
    };
    // To look for transforms costs a part of the work, which may be what a first plan needs.
    const driver::Answer without = solved("default", 1, 100'000), with = solved("all", 1, 200'000),
                         again = solved("all", 3, 200'000);
    CHECK(with.outcome.cost == again.outcome.cost);
    if (with.outcome.plan) CHECK(with.outcome.plan->steps == again.outcome.plan->steps);
    if (!without.outcome.plan) continue;
    REQUIRE(with.outcome.plan);
    CHECK(with.outcome.cost.duration <= without.outcome.cost.duration);
  }
}

TEST_CASE("transforms: if the best list is proven optimal, the original graph gets the rest") {
  const Graph graph = three_products();
  Problem problem{.graph = graph, .budget = own_peak(graph)};
  problem.techniques = parse_techniques("all", false);
  driver::Request request = by("auto");
  request.limits.work = 100'000;
  // In tenths of the graph's time: what a solver says of the graph as it is, and of any other.
  const auto last_of = [&](std::int64_t other_bound) {
    std::vector<std::vector<Transform>> asked;
    const auto solve = [&](const Question& question, const driver::Request& how) {
      const auto times = [&](std::int64_t tenths) {
        return Ticks(graph.total_time().count() * tenths / 10);
      };
      const bool plain = question.transforms.empty();
      asked.push_back(question.transforms);
      driver::Answer answer;
      answer.work = *how.limits.work;
      answer.outcome.status = Status::feasible;
      answer.outcome.stopped_by = StopReason::work_limit;
      answer.outcome.plan.emplace().transforms = question.transforms;
      answer.outcome.cost = {times(plain ? 16 : 13), Bytes(1), {}};
      answer.outcome.bound = {times(plain ? 11 : other_bound), Bytes(1)};
      return answer;
    };
    driver::search_transforms({problem}, request, solve);
    REQUIRE(std::ranges::any_of(asked, [](const auto& list) { return !list.empty(); }));
    return asked.back();
  };
  CHECK(last_of(13).empty());
  CHECK(!last_of(12).empty());
}

Graph random_step(std::uint64_t seed, std::int64_t batch) {
  Random random(seed);
  Classifier classifier = Classifier::random(random);
  classifier.batch = batch;
  classifier.widths = {4, 16, 16, 12};
  return step_of(classifier);
}

// Which transforms to use is the solver's choice.
Problem open_problem(const Graph& graph, std::int64_t percent) {
  Problem problem{.graph = graph, .budget = Bytes(own_peak(graph).count() * percent / 100)};
  problem.techniques = parse_techniques("default,split,hoist", false);
  return problem;
}

TEST_CASE("magis: finds transforms in both orders, and its plans verify") {
  const solve::SolverTable solvers = driver::all_solvers();
  std::size_t split = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const Graph graph = random_step(seed, 256);
    Problem problem = open_problem(graph, 60);
    if (seed % 2 == 1) problem.order = Order::given;
    if (seed % 3 == 0) {
      problem.techniques.offload = true;
      problem.machine = Machine{{Ticks(1), Bytes(4), Ticks(1)}, {Ticks(1), Bytes(4), Ticks(1)}};
    }
    const driver::Answer answer = driver::solve(solvers, problem, by("magis"));
    if (!answer.outcome.plan) continue;
    const Plan& plan = *answer.outcome.plan;
    CHECK(verify(problem, plan).ok);
    for (const Transform& transform : plan.transforms) split += kind_of(transform) == "split";
    // Where none may be used, none is.
    Problem plain = problem;
    plain.techniques.split = plain.techniques.hoist = false;
    const driver::Answer without = driver::solve(solvers, plain, by("magis"));
    if (without.outcome.plan) CHECK(without.outcome.plan->transforms.empty());
  }
  CHECK(split > 3);
}

TEST_CASE("magis: parts of ops run in place only if that is allowed") {
  const solve::SolverTable solvers = driver::all_solvers();
  std::size_t with_transforms = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    const Graph graph = random_step(seed, 96);
    Problem problem = open_problem(graph, 70);
    problem.techniques = parse_techniques("recompute,split,hoist", false);
    const driver::Answer answer = driver::solve(solvers, problem, by("magis"));
    if (answer.outcome.plan) with_transforms += answer.outcome.plan->transforms.empty() ? 0 : 1;
  }
  CHECK(with_transforms > 3);
}

TEST_CASE("magis: least memory within a time limit, with transforms, the same each time") {
  const solve::SolverTable solvers = driver::all_solvers();
  Classifier classifier;
  classifier.batch = 64;
  classifier.widths = {4, 40, 41, 42, 10};
  const Graph graph = step_of(classifier);
  Problem problem = open_problem(graph, 100);
  problem.budget = Bytes::max();
  problem.objective = Objective::least_memory;
  problem.time_limit = Ticks(graph.total_time().count() * 3 / 2);
  const driver::Answer one = driver::solve(solvers, problem, by("magis"));
  REQUIRE(one.outcome.plan);
  CHECK(verify(problem, *one.outcome.plan).ok);
  CHECK(one.outcome.cost.duration <= *problem.time_limit);
  CHECK(one.outcome.cost.peak < own_peak(graph));
  const driver::Answer again = driver::solve(solvers, problem, by("magis"));
  CHECK(again.outcome.plan->steps == one.outcome.plan->steps);
  CHECK(again.outcome.note == one.outcome.note);
}

TEST_CASE("transforms: auto applies substitutions that save time, only if they are allowed") {
  const Graph graph = three_products();
  Problem problem{.graph = graph, .budget = Bytes::max()};
  const solve::SolverTable solvers = driver::all_solvers();
  for (const bool allowed : {false, true}) {
    CAPTURE(allowed);
    problem.techniques = parse_techniques(allowed ? "default,substitute" : "default", false);
    const driver::Answer answer = driver::solve(solvers, problem, by("auto"));
    REQUIRE(answer.outcome.plan);
    CHECK(answer.outcome.plan->transforms.empty() != allowed);
    CHECK((answer.outcome.cost.duration < graph.total_time()) == allowed);
    CHECK(verify(problem, *answer.outcome.plan).ok);
  }
}

}  // namespace
}  // namespace lowtide
