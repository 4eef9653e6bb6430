// The smallest budget within a time limit: against brute force, whatever the number of threads.
#include "lowtide/driver/fit.h"

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

#include "oracles/brute_force.h"
#include "support/network.h"
#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {
namespace {

driver::FitRequest request_for(const Graph& graph, std::int64_t percent, int threads = 2) {
  driver::FitRequest request;
  const std::int64_t base = graph.total_time().count();
  request.time_limit = Ticks(base + base * percent / 100);
  request.settings.limits.work = sanitized(40'000, 500'000);
  request.settings.threads = threads;
  return request;
}

void check_fit(const Graph& graph, const driver::FitRequest& request, const Fit& found) {
  REQUIRE(found.point.has_value());
  const Outcome& outcome = found.point->outcome;
  const Problem problem{
      .graph = graph, .budget = found.point->budget, .order = request.terms.order};
  const Verdict verdict = verify(problem, outcome.plan.value());
  CHECK(verdict.ok);
  CHECK(verdict.cost == outcome.cost);
  CHECK(outcome.cost.peak == found.point->budget);
  CHECK(outcome.cost.duration <= request.time_limit);
  CHECK(outcome.bound.duration <= outcome.cost.duration);
  CHECK(found.floor <= found.point->budget);
  CHECK(found.point->budget <= found.own_peak);
}

TEST_CASE("fit: small graphs against brute force") {
  const solve::SolverTable table = driver::all_solvers();
  for (int i = 0; i < samples(20, 30); ++i) {
    CAPTURE(i);
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random, {.ops = 5 + random.below(2), .reads = 2});
    driver::FitRequest request = request_for(graph, static_cast<std::int64_t>(random.below(60)));
    request.terms.order = random.chance(0.5) ? Order::given : Order::free;
    const Fit found = fit(table, graph, request);
    check_fit(graph, request, found);
    const auto least =
        oracle::least_peak(oracle::all_tradeoffs(graph, request.terms.order), request.time_limit);
    REQUIRE(least.has_value());
    CHECK(found.point->budget >= *least);
    CHECK(found.floor <= *least);
  }
}

TEST_CASE(
    "fit: without a time limit threads change nothing; a larger time limit needs no more memory") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("transformer", 120, 1);
  Bytes before = Bytes::max();
  for (const std::int64_t percent : {0, 5, 15}) {
    if (kSanitized && percent == 0) continue;
    const Fit alone = fit(table, graph, request_for(graph, percent, 1));
    const Fit three = fit(table, graph, request_for(graph, percent, 3));
    check_fit(graph, request_for(graph, percent), alone);
    CHECK(alone.point->budget == three.point->budget);
    CHECK(alone.point->outcome.plan->steps == three.point->outcome.plan->steps);
    CHECK(alone.floor == three.floor);
    CHECK(alone.point->budget <= before);
    before = alone.point->budget;
  }
  CHECK(before < own_peak(graph));
}

TEST_CASE("fit: the reported stop is that of the whole limit, not of a solve's share") {
  const Graph graph = generate("transformer", 120, 1);
  const Fit found = fit(driver::all_solvers(), graph, request_for(graph, 5));
  REQUIRE_FALSE(found.proven());
  CHECK(found.stopped_by == StopReason::work_limit);
}

TEST_CASE("fit: a small work limit is used completely") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    if (kSanitized && seed > 1) continue;
    const Graph graph = generate("transformer", 120, seed);
    for (const std::int64_t work : {60'000, 150'000}) {
      CAPTURE(seed);
      CAPTURE(work);
      driver::FitRequest request = request_for(graph, 5);
      request.settings.limits.work = work;
      const Fit found = fit(driver::all_solvers(), graph, request);
      CHECK((found.proven() || found.stopped_by == StopReason::work_limit));
    }
  }
}

TEST_CASE("fit: a time limit below the base duration") {
  const Graph graph = generate("chain", 20, 1);
  driver::FitRequest request = request_for(graph, 0);
  request.time_limit = graph.total_time() - Ticks(1);
  const Fit found = fit(driver::all_solvers(), graph, request);
  CHECK_FALSE(found.point.has_value());
}

TEST_CASE("fit: cancelled, and without time") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = generate("resnet", 1000, 1);
  CancelToken token;
  token.cancel();
  driver::FitRequest request = request_for(graph, 5);
  request.settings.limits = {.seconds = 60, .cancel = &token};
  const Fit cancelled = fit(table, graph, request);
  check_fit(graph, request, cancelled);
  CHECK(cancelled.stopped_by == StopReason::cancelled);
  request.settings.limits = {.seconds = 0};
  check_fit(graph, request, fit(table, graph, request));
}

TEST_CASE("fit: with transforms less memory than without, the same for every number of threads") {
  const solve::SolverTable table = driver::all_solvers();
  const Graph graph = step_of({.batch = 96, .widths = {4, 16, 16, 12}});
  driver::FitRequest request = request_for(graph, 1'000'000);  // parts of such small ops take long
  request.settings.limits.work = sanitized(100'000, 1'000'000);  // with leaps of the last contender
  const Fit without = fit(table, graph, request);
  request.terms.techniques = parse_techniques("all", false);
  const Fit with = fit(table, graph, request);
  REQUIRE(with.point);
  CHECK(with.point->budget < without.point->budget);
  const Plan& plan = *with.point->outcome.plan;
  CHECK(!plan.transforms.empty());
  const Question question = question_on(graph, with.point->budget, request.terms);
  CHECK(verify(question, plan).cost == with.point->outcome.cost);
  CHECK(with.point->outcome.cost.duration <= request.time_limit);
  request.settings.threads = 1;
  CHECK(fit(table, graph, request).point->outcome.plan->steps == plan.steps);
}

TEST_CASE("fit: substitutions reach a time limit below the base duration") {
  const Graph graph = three_products();
  driver::FitRequest request = request_for(graph, 0);
  request.time_limit = graph.total_time() - Ticks(1);
  request.terms.techniques = parse_techniques("default,substitute", false);
  const Fit found = fit(driver::all_solvers(), graph, request);
  REQUIRE(found.point);
  CHECK(found.point->outcome.cost.duration < graph.total_time());
}

}  // namespace
}  // namespace lowtide
