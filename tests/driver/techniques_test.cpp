// What is allowed is all that is used, and what is said of it agrees with brute force.
#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/allowed_graph.h"
#include "lowtide/driver/curve.h"
#include "lowtide/driver/driver.h"
#include "lowtide/driver/fit.h"
#include "lowtide/sim/verify.h"
#include "lowtide/solve/sequence/peak_floor.h"

#include "oracles/brute_force.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

constexpr std::int64_t kWork = 30'000;

Outcome answer(const Problem& problem) {
  driver::Request request;
  request.limits.work = kWork;
  return driver::solve(driver::all_solvers(), problem, request).outcome;
}

TEST_CASE("techniques: plans use what is allowed, and answers agree with brute force") {
  int without_plan = 0, slower = 0;
  for (int i = 0; i < samples(40); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i) + 500);
    RandomGraphSettings settings;
    settings.ops = 3 + random.below(4);
    const Graph graph = random_graph(random, settings);
    for (const bool recompute : {false, true})
      for (const bool in_place : {false, true}) {
        CAPTURE(recompute);
        CAPTURE(in_place);
        const Techniques techniques{.recompute = recompute, .in_place = in_place};
        const Order order = random.chance(0.5) ? Order::free : Order::given;
        const Problem problem{
            .graph = graph,
            .budget = oracle::smallest_peak(graph, order) + Bytes(random.below(8)),
            .order = order,
            .techniques = techniques};
        const driver::AllowedGraph allowed(problem);
        const auto best = oracle::fastest(allowed.problem().graph, order, problem.budget);
        const Outcome outcome = answer(problem);
        if (outcome.plan) CHECK(verify(problem, *outcome.plan).ok);
        without_plan += best ? 0 : 1;
        slower += best && best->duration > graph.total_time() ? 1 : 0;
        if (!best) {
          CHECK_FALSE(outcome.plan.has_value());
          continue;
        }
        CHECK(outcome.status != Status::infeasible);
        CHECK(outcome.bound.duration <= best->duration);
        if (outcome.status == Status::optimal) CHECK(outcome.cost.duration == best->duration);
        // Nothing to choose but the order, or nothing at all.
        if (!recompute && order == Order::given) CHECK(outcome.status == Status::optimal);
      }
  }
  CHECK(without_plan > 0);
  CHECK(slower > 0);
}

TEST_CASE("techniques: with one order and no recomputation the floor is the peak") {
  for (int i = 0; i < samples(300); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i) + 900);
    const Graph graph = random_graph(random).without_recomputation();
    const Bytes peak = simulate(graph, plan_from_sequence(graph, graph.order())).cost.peak;
    CHECK(solve::peak_floor({.graph = graph, .budget = Bytes(0), .order = Order::given}) == peak);
  }
}

TEST_CASE("techniques: a tensor at home on the host needs a link and the technique offload") {
  const Graph graph = Sketch({10, 5}).op({0}, {1}, 3).on_host({0}).keep({1}).graph();
  Problem problem{.graph = graph, .budget = Bytes(15)};
  CHECK_THROWS_AS(answer(problem), InputError);
  problem.machine = Machine{{Ticks(1), Bytes(1), Ticks(1)}, {Ticks(1), Bytes(1), Ticks(1)}};
  const Outcome outcome = answer(problem);
  CHECK(outcome.status == Status::optimal);
  CHECK(outcome.cost == Cost{Ticks(14), Bytes(15), Bytes(10)});
  problem.host_budget = Bytes(9);
  CHECK_THROWS_AS(answer(problem), InputError);
  problem.host_budget.reset();
  problem.machine->device_to_host.latency = Ticks::max();
  CHECK_THROWS_AS(answer(problem), InputError);
  problem.machine->device_to_host.latency = Ticks(1);
  problem.host_budget = Bytes(10);
  CHECK(answer(problem).status == Status::optimal);
  problem.techniques.offload = false;
  CHECK_THROWS_AS(answer(problem), InputError);
}

TEST_CASE("techniques: fit with a given order that waits for tensors at home on the host") {
  // In its own order the second tensor is fetched once the first has gone: 10 + 3 + 10 + 10 + 10.
  const Graph graph = Sketch({10, 10, 1})
                          .op({0}, {}, 3)
                          .mutates({0})
                          .op({1}, {2}, 20)
                          .on_host({0, 1})
                          .keep({2})
                          .graph();
  const Link link{Ticks(0), Bytes(1), Ticks(1)};
  driver::FitRequest request;
  request.terms.machine = {link, link};
  request.terms.order = Order::given;
  request.time_limit = Ticks(40);
  request.settings.limits.work = kWork;
  const Fit fit = driver::fit(driver::all_solvers(), graph, request);
  REQUIRE(fit.point);
  CHECK(fit.point->outcome.cost.duration == Ticks(40));
  CHECK(fit.point->budget == Bytes(21));
  request.time_limit = Ticks(39);
  CHECK_FALSE(driver::fit(driver::all_solvers(), graph, request).point);
}

TEST_CASE("techniques: a curve over a link fetches tensors at home on the host") {
  const Graph graph =
      Sketch({10, 5, 5}).op({0}, {1}, 3).op({1}, {2}, 3).on_host({0}).keep({2}).graph();
  driver::CurveRequest request;
  request.from = Bytes(15);
  request.to = Bytes(20);
  request.points = 2;
  request.terms.machine = {{Ticks(1), Bytes(1), Ticks(1)}, {Ticks(1), Bytes(1), Ticks(1)}};
  request.settings.limits.work = kWork;
  const Tradeoff curve = driver::curve(driver::all_solvers(), graph, request);
  REQUIRE_FALSE(curve.points.empty());
  for (const TradeoffPoint& point : curve.points) CHECK(point.outcome.plan);
  request.terms.techniques.offload = false;
  CHECK_THROWS_AS(driver::curve(driver::all_solvers(), graph, request), InputError);
}

TEST_CASE("techniques: a curve without some techniques holds for the original graph") {
  int plans = 0;
  for (int i = 0; i < samples(10); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i) + 1300);
    const Graph graph = random_graph(random, {.ops = 12});
    driver::CurveRequest request;
    request.from = Bytes(own_peak(graph).count() / 2);
    request.to = own_peak(graph);
    request.points = 3;
    request.terms.techniques = {.recompute = i % 2 == 0, .in_place = i % 2 != 0};
    request.settings.limits.work = kWork;
    const Tradeoff curve = driver::curve(driver::all_solvers(), graph, request);
    for (const TradeoffPoint& point : curve.points) {
      if (!point.outcome.plan) continue;
      const Verdict verdict =
          verify(question_on(graph, point.budget, request.terms), *point.outcome.plan);
      CHECK(verdict.ok);
      CHECK(verdict.cost == point.outcome.cost);
      ++plans;
    }
  }
  CHECK(plans > samples(5));
}

}  // namespace
}  // namespace lowtide
