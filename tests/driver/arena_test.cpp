// Budgets of arenas: what is answered lies within them, and what is proven is proven of them.
#include "lowtide/driver/arena.h"

#include <doctest/doctest.h>

#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

#include "support/print.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

using driver::ArenaAnswer;
using driver::Request;

Request request(std::int64_t work, std::uint64_t seed = 0) {
  Request request;
  request.limits.work = work;
  request.seed = seed;
  return request;
}

PlanVerdict verdict(const Question& question, const ArenaAnswer& found, Bytes alignment) {
  PlanFile file = plan_file(question, found.answer.outcome, {});
  file.footprint = Footprint::arena;
  layout::write_offsets(file, *found.placement, alignment);
  return check_plan(question.problem.graph, file);
}

TEST_CASE("arena: plans of random graphs lie within the budget, and repeat") {
  const solve::SolverTable solvers = driver::all_solvers();
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
    const Question question{
        {.graph = graph, .budget = Bytes(peak.count() * random.between(60, 100) / 100)}};
    const Problem& problem = question.problem;
    const ArenaAnswer found = driver::solve_arena(solvers, question, request(20'000), alignment);
    const ArenaAnswer again = driver::solve_arena(solvers, question, request(20'000), alignment);
    const Outcome& outcome = found.answer.outcome;
    CHECK(again.answer.outcome.status == outcome.status);
    CHECK(again.answer.outcome.cost == outcome.cost);
    REQUIRE(outcome.plan.has_value() == found.placement.has_value());
    if (!found.placement) {
      if (found.smallest_arena) CHECK(*found.smallest_arena > problem.budget);
      continue;
    }
    ++within;
    CHECK(again.placement->offsets == found.placement->offsets);
    CHECK(found.placement->arena <= problem.budget);
    CHECK(outcome.bound.duration <= outcome.cost.duration);
    const PlanVerdict judged = verdict(question, found, alignment);
    CHECK_MESSAGE(judged.kind == PlanVerdict::Kind::holds, judged.reason);
  }
  CHECK(within > 0);
}

// t0 (10) and t1 (7), each read at once; t2 (8), which is kept.
Graph chain() { return Sketch({10, 7, 8}).op({}, {0}).op({0}, {1}).op({1}, {2}).keep({2}).graph(); }

TEST_CASE("arena: what does not lie within the budget for its alignment is no plan") {
  const Graph graph = chain();
  const solve::SolverTable solvers = driver::all_solvers();
  Question question{{.graph = graph, .budget = Bytes(17)}};
  const ArenaAnswer fits = driver::solve_arena(solvers, question, request(2'000), Bytes(1));
  REQUIRE(fits.placement);
  CHECK(fits.placement->arena == Bytes(17));
  CHECK(fits.answer.outcome.status == Status::optimal);

  // In multiples of 16, t0 and t1 take 32 bytes.
  const ArenaAnswer none = driver::solve_arena(solvers, question, request(2'000), Bytes(16));
  CHECK_FALSE(none.placement);
  CHECK_FALSE(none.answer.outcome.plan);
  CHECK(none.answer.outcome.status == Status::unknown);
  CHECK(none.answer.outcome.stopped_by == StopReason::gave_up);
  CHECK(none.smallest_arena == Bytes(32));
  CHECK(none.answer.outcome.note.find("32 bytes") != std::string::npos);

  question.problem.budget = Bytes(16);
  const ArenaAnswer proven = driver::solve_arena(solvers, question, request(2'000), Bytes(1));
  CHECK(proven.answer.outcome.status == Status::infeasible);
}

TEST_CASE("arena: interrupted at once, there is no plan and no fault") {
  const Graph graph = chain();
  CancelToken cancel;
  cancel.cancel();
  Request stopped = request(1'000);
  stopped.limits.cancel = &cancel;
  const ArenaAnswer found =
      driver::solve_arena(driver::all_solvers(), {{.graph = graph, .budget = Bytes(17)}}, stopped);
  CHECK(found.placement.has_value() == found.answer.outcome.plan.has_value());
}

}  // namespace
}  // namespace lowtide
