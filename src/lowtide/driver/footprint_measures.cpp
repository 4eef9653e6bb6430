// The measures of footprints, and what plan files say of them.
#include "lowtide/driver/footprint.h"
#include "lowtide/layout/allocator/replay.h"
#include "lowtide/layout/footprint.h"
#include "lowtide/layout/plan_trace.h"

namespace lowtide::driver {

namespace {

Measure arena_of(const Question& question, const Request& request, const FootprintTerms& terms) {
  return [&](const Plan& plan, Limits& limits) {
    const layout::PlaceSettings settings{
        .alignment = terms.alignment, .capacity = question.problem.budget, .seed = request.seed};
    layout::PlanPlacement placed =
        layout::place_plan(question.problem.graph, plan, settings, limits);
    const Bytes arena = placed.arena;
    return Taken{arena, std::move(placed)};
  };
}

Measure reserved_for(const Question& question, const FootprintTerms& terms) {
  return [&](const Plan& plan, Limits& limits) {
    const layout::Trace trace =
        layout::plan_trace(question.problem.graph, plan, layout::kFootprintSteps);
    limits.spend_all(static_cast<std::int64_t>(trace.size()) / 2);
    return Taken{layout::replay(trace, terms.allocator).peaks.reserved};
  };
}

}  // namespace

FootprintAnswer solve_within(const solve::SolverTable& solvers, const Question& question,
                             const Request& request, const FootprintTerms& terms) {
  if (terms.kind == Footprint::arena)
    return solve_within(solvers, question, request, arena_of(question, request, terms));
  if (terms.kind == Footprint::reserved)
    return solve_within(solvers, question, request, reserved_for(question, terms));
  FootprintAnswer found;
  found.answer = solve(solvers, question, request);
  found.rounds = 1;
  if (!found.answer.outcome.plan) return found;
  found.least = found.answer.outcome.cost.peak;
  found.taken = Taken{*found.least};
  return found;
}

void claim_footprint(PlanFile& file, const FootprintTerms& terms,
                     const std::optional<Taken>& taken) {
  file.footprint = terms.kind;
  if (terms.kind == Footprint::reserved) file.allocator = layout::to_string(terms.allocator);
  if (!taken) return;
  if (terms.kind == Footprint::reserved) file.claims.reserved = taken->bytes;
  if (taken->placement) layout::write_offsets(file, *taken->placement, terms.alignment);
}

}  // namespace lowtide::driver
