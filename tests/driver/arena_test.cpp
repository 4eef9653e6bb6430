// Budgets of arenas: what is answered lies within them, and what is proven is proven of them.
#include <doctest/doctest.h>

#include "lowtide/driver/footprint.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

using driver::FootprintAnswer;
using driver::Request;

Request request(std::int64_t work, std::uint64_t seed = 0) {
  Request request;
  request.limits.work = work;
  request.seed = seed;
  return request;
}

FootprintAnswer solve_arena(const Problem& problem, const Request& request, Bytes alignment) {
  const driver::FootprintTerms terms{.kind = Footprint::arena, .alignment = alignment};
  return driver::solve_within(driver::all_solvers(), {problem}, request, terms);
}

PlanVerdict verdict(const Problem& problem, const FootprintAnswer& found, Bytes alignment) {
  PlanFile file = plan_file({problem}, found.answer.outcome, {});
  driver::claim_footprint(file, {.kind = Footprint::arena, .alignment = alignment}, found.taken);
  return check_plan(problem.graph, file);
}

TEST_CASE("arena: plans of random graphs lie within the budget, and repeat") {
  int within = 0;
  for (int seed = 0; seed < samples(12, 100); ++seed) {
    CAPTURE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    RandomGraphSettings settings = RandomGraphSettings::plain(12 + random.below(20));
    settings.bytes = 1000;
    settings.workspace = 300;
    settings.with_workspace = 0.3;
    settings.resident = 50;
    const Graph graph = random_graph(random, settings);
    const Bytes alignment(random.chance(0.5) ? 1 : 16);
    const Bytes peak = own_peak(graph);
    Problem problem{.graph = graph, .budget = Bytes(peak.count() * random.between(60, 100) / 100)};
    const FootprintAnswer found = solve_arena(problem, request(20'000), alignment);
    const FootprintAnswer again = solve_arena(problem, request(20'000), alignment);
    const Outcome& outcome = found.answer.outcome;
    CHECK(again.answer.outcome.status == outcome.status);
    CHECK(again.answer.outcome.cost == outcome.cost);
    REQUIRE(outcome.plan.has_value() == found.taken.has_value());
    if (!found.taken) {
      if (const auto* least = found.measured.smallest()) CHECK(least->needs() > problem.budget);
      continue;
    }
    ++within;
    CHECK(again.taken->offsets == found.taken->offsets);
    CHECK(found.taken->bytes <= problem.budget);
    CHECK(outcome.bound.duration <= outcome.cost.duration);
    const PlanVerdict judged = verdict(problem, found, alignment);
    CHECK_MESSAGE(judged.kind == PlanVerdict::Kind::holds, judged.reason);
  }
  CHECK(within > 0);
}

// t0 (10) and t1 (7), each read at once; t2 (8), which is kept.
Graph chain() { return Sketch({10, 7, 8}).op({}, {0}).op({0}, {1}).op({1}, {2}).keep({2}).graph(); }

TEST_CASE("arena: what does not lie within the budget for its alignment is no plan") {
  const Graph graph = chain();
  Problem problem{.graph = graph, .budget = Bytes(17)};
  const FootprintAnswer fits = solve_arena(problem, request(2'000), Bytes(1));
  REQUIRE(fits.taken);
  CHECK(fits.taken->bytes == Bytes(17));
  CHECK(fits.answer.outcome.status == Status::optimal);

  // In multiples of 16, t0 and t1 take 32 bytes.
  const FootprintAnswer none = solve_arena(problem, request(200'000), Bytes(16));
  CHECK_FALSE(none.taken);
  CHECK_FALSE(none.answer.outcome.plan);
  CHECK(none.answer.outcome.status == Status::unknown);
  CHECK(none.answer.outcome.stopped_by == StopReason::gave_up);
  CHECK(none.measured.smallest()->needs() == Bytes(32));
  CHECK(none.answer.outcome.note.find("32 bytes") != std::string::npos);

  problem.budget = Bytes(16);
  const FootprintAnswer proven = solve_arena(problem, request(2'000), Bytes(1));
  CHECK(proven.answer.outcome.status == Status::infeasible);
}

TEST_CASE("arena: interrupted at once, there is no plan and no fault") {
  const Graph graph = chain();
  CancelToken cancel;
  cancel.cancel();
  Request stopped = request(1'000);
  stopped.limits.cancel = &cancel;
  const FootprintAnswer found =
      solve_arena({.graph = graph, .budget = Bytes(17)}, stopped, driver::kArenaAlignment);
  CHECK(found.taken.has_value() == found.answer.outcome.plan.has_value());
}

}  // namespace
}  // namespace lowtide
