// The measures of footprints, and what plan files say of them.
#include <utility>

#include "lowtide/driver/footprint.h"
#include "lowtide/layout/allocator/replay.h"
#include "lowtide/layout/footprint.h"
#include "lowtide/layout/place_plan.h"
#include "lowtide/layout/plan_trace.h"

namespace lowtide::driver {

Measure measure_of(const Graph& graph, const FootprintTerms& terms, Bytes capacity,
                   std::uint64_t seed) {
  switch (terms.kind) {
    case Footprint::live: break;
    case Footprint::arena:
      return
          [&graph, capacity, seed, alignment = terms.alignment](const Plan& plan, Limits& limits) {
            const layout::PlaceSettings settings{
                .alignment = alignment, .capacity = capacity, .seed = seed};
            layout::PlanPlacement placed = layout::place_plan(graph, plan, settings, limits);
            return Taken{placed.arena, std::move(placed.offsets)};
          };
    case Footprint::reserved:
      return [&graph, allocator = terms.allocator](const Plan& plan, Limits& limits) {
        const layout::Trace trace = layout::plan_trace(graph, plan, layout::kFootprintSteps);
        limits.spend_all(static_cast<std::int64_t>(trace.size()) / 2);
        return Taken{layout::replay(trace, allocator).peaks.reserved};
      };
  }
  return {};
}

FootprintAnswer solve_within(const solve::SolverTable& solvers, const Question& question,
                             const Request& request, const FootprintTerms& terms, Ticks enough) {
  const Problem& problem = question.problem;
  if (terms.kind != Footprint::live)
    return solve_within(solvers, question, request,
                        measure_of(problem.graph, terms, problem.budget, request.seed), enough);
  FootprintAnswer found;
  found.answer = solve(solvers, question, request);
  found.rounds = 1;
  if (found.answer.outcome.plan) found.taken = Taken{found.answer.outcome.cost.peak};
  return found;
}

void claim_footprint(PlanFile& file, const FootprintTerms& terms,
                     const std::optional<Taken>& taken) {
  file.footprint = terms.kind;
  if (terms.kind == Footprint::reserved) file.allocator = layout::to_string(terms.allocator);
  if (!taken) return;
  if (terms.kind == Footprint::reserved) file.claims.reserved = taken->bytes;
  if (terms.kind != Footprint::arena) return;
  file.offsets = taken->offsets;
  file.alignment = terms.alignment;
  file.claims.arena = taken->bytes;
}

}  // namespace lowtide::driver
