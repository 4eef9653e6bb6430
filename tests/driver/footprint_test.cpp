// Budgets of what is taken, by measures that tell what they are asked.
#include "lowtide/driver/footprint.h"

#include <functional>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/live_budgets.h"
#include "lowtide/graph/generate.h"
#include "lowtide/layout/reserved.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

#include "support/print.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

struct Case {
  Graph graph = generate("resnet", 120, 3);
  Question question{{.graph = graph, .budget = Bytes(own_peak(graph).count() * 6 / 10)}};
  Problem& problem = question.problem;
  driver::Request request;

  Case() {
    request.limits.work = sanitized(100'000, 800'000);
    request.seed = 4;
  }
  driver::FootprintAnswer within(const std::function<Bytes(const Plan&)>& measure) const {
    return driver::solve_within(driver::all_solvers(), question, request,
                                [&](const Plan& plan, Limits& limits) {
                                  limits.spend(10);
                                  return Taken{measure(plan)};
                                });
  }
  Bytes peak_of(const Plan& plan) const { return simulate(graph, plan).cost.peak; }
};

TEST_CASE("footprint: what is live, measured, is a budget of live bytes") {
  const Case one;
  const auto found = one.within([&](const Plan& plan) { return one.peak_of(plan); });
  const Outcome& outcome = found.answer.outcome;
  REQUIRE(outcome.plan.has_value());
  CHECK(found.taken->bytes == outcome.cost.peak);
  CHECK(outcome.cost.peak <= one.problem.budget);
  CHECK(found.rounds <= 2);
  CHECK(outcome.bound.duration <= outcome.cost.duration);
  CHECK(found.answer.work <= *one.request.limits.work * 11 / 10);
}

TEST_CASE("footprint: a plan that takes half more than is live is planned with a smaller budget") {
  const Case one;
  const auto measure = [&](const Plan& plan) { return Bytes(one.peak_of(plan).count() / 2 * 3); };
  const auto found = one.within(measure);
  const Outcome& outcome = found.answer.outcome;
  REQUIRE(outcome.plan.has_value());
  CHECK(found.taken->bytes == measure(*outcome.plan));
  CHECK(found.taken->bytes <= one.problem.budget);
  CHECK(outcome.cost.peak.count() > one.problem.budget.count() / 2);
  CHECK(found.rounds > 1);
  // The same seed and work: the same plan.
  const auto again = one.within(measure);
  CHECK(again.answer.outcome.plan->steps == outcome.plan->steps);
  CHECK(again.answer.work == found.answer.work);
}

TEST_CASE("footprint: where plans always take too much, there is none, and it is said") {
  const Case one;
  const Bytes taken = one.problem.budget + Bytes(1);
  const auto found = one.within([&](const Plan&) { return taken; });
  CHECK_FALSE(found.answer.outcome.plan.has_value());
  CHECK(found.answer.outcome.status == Status::unknown);
  CHECK_FALSE(found.taken.has_value());
  CHECK(found.measured.smallest()->needs() == taken);
  CHECK(found.answer.outcome.note.find(std::to_string(taken.count())) != std::string::npos);
}

TEST_CASE("footprint: a budget that no plan of live bytes keeps is infeasible") {
  Case one;
  one.problem.budget = Bytes(1);
  const auto found = one.within([&](const Plan& plan) { return one.peak_of(plan); });
  CHECK(found.answer.outcome.status == Status::infeasible);
  CHECK(found.rounds == 1);
  one.problem.objective = Objective::least_memory;
  CHECK_THROWS_AS(one.within([](const Plan&) { return Bytes(0); }), InputError);
}

TEST_CASE("live budgets: down to the fewest live bytes, then over the whole range") {
  driver::LiveBudgets live(Bytes(1000));
  std::vector<Bytes> peaks;
  while (!live.exhausted()) {
    REQUIRE(peaks.size() < 40);
    const Bytes peak(live.next().count() / 100 * 100);
    if (peak < Bytes(300)) {
      live.none(Bytes(250));
      continue;
    }
    peaks.push_back(peak);
    live.misses(peak, Bytes(1100), peak);
  }
  CHECK(peaks.front() == Bytes(1000));
  CHECK(peaks.back() == Bytes(300));
  for (int i = 0; i < 5; ++i) {
    CHECK(live.next() >= Bytes(300));
    CHECK(live.next() <= Bytes(1000));
    live.misses(Bytes(300), Bytes(1100), Bytes(300));
  }
}

TEST_CASE("live budgets: up to the largest with which plans fit") {
  driver::LiveBudgets live(Bytes(1000));
  while (!live.exhausted()) {
    if (live.next() <= Bytes(617))
      live.fits();
    else
      live.misses(live.next(), Bytes(live.next().count() * 2), live.next());
  }
  CHECK(live.next() == Bytes(617));
}

TEST_CASE("footprint: plan files claim what is taken, and the claims are checked") {
  const Case one;
  for (const Footprint kind : {Footprint::arena, Footprint::reserved}) {
    CAPTURE(to_string(kind));
    driver::FootprintTerms terms{.kind = kind};
    terms.allocator.expandable_segments = true;
    const auto found =
        driver::solve_within(driver::all_solvers(), one.question, one.request, terms);
    REQUIRE(found.answer.outcome.plan.has_value());
    CHECK(found.taken->bytes <= one.problem.budget);
    PlanFile file = plan_file(one.question, found.answer.outcome, {});
    driver::claim_footprint(file, terms, found.taken);
    CHECK(check_plan(one.graph, file).kind == PlanVerdict::Kind::holds);
    CHECK_FALSE(layout::reserved_fault(one.graph, file));
    if (kind == Footprint::arena) {
      CHECK(file.claims.arena == found.taken->bytes);
      CHECK_FALSE(file.offsets.empty());
      continue;
    }
    CHECK(file.claims.reserved == found.taken->bytes);
    CHECK(file.allocator == "expandable_segments:True");
    PlanFile other = file;
    other.claims.reserved = *file.claims.reserved - Bytes(1);
    CHECK(layout::reserved_fault(one.graph, other));
    other = file;
    other.allocator = "expandable_segments:Perhaps";
    CHECK(layout::reserved_fault(one.graph, other));
    other = file;
    other.budget = *file.claims.reserved - Bytes(1);
    CHECK(check_plan(one.graph, other).kind == PlanVerdict::Kind::broken);
  }
}

}  // namespace
}  // namespace lowtide
