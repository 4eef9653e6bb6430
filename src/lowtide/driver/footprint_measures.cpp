// The measures of footprints, and what plan files say of them.
#include "lowtide/base/error.h"
#include "lowtide/driver/footprint.h"
#include "lowtide/layout/place_plan.h"
#include "lowtide/layout/reserved.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::driver {

namespace {

constexpr Bytes kAlignment{512};              // what CUDA's allocators give
constexpr std::int64_t kPlaceWork = 500'000;  // a fraction of a second

// The same offsets each time. A capacity ends the search as soon as they lie within it.
layout::PlanPlacement place(const Graph& graph, const Plan& plan, std::optional<Bytes> capacity) {
  layout::PlaceSettings settings;
  settings.alignment = kAlignment;
  settings.capacity = capacity;
  Limits limits(LimitSettings{.work = kPlaceWork});
  return layout::place_plan(graph, plan, settings, limits);
}

}  // namespace

FootprintAnswer solve_within(const solve::SolverTable& solvers, const Problem& problem,
                             const Request& request, const FootprintTerms& terms) {
  switch (terms.kind) {
    case Footprint::live: break;
    case Footprint::arena:
      return solve_within(solvers, problem, request, [&](const Plan& plan) {
        return place(problem.graph, plan, problem.budget).arena;
      });
    case Footprint::reserved:
      return solve_within(solvers, problem, request, [&](const Plan& plan) {
        return layout::reserved_bytes(problem.graph, plan, terms.allocator);
      });
  }
  FootprintAnswer found;
  found.answer = solve(solvers, problem, request);
  if (found.answer.outcome.plan) found.taken = found.least = found.answer.outcome.cost.peak;
  found.rounds = 1;
  return found;
}

void claim_footprint(PlanFile& file, const Graph& graph, const FootprintTerms& terms) {
  file.footprint = terms.kind;
  if (terms.kind == Footprint::reserved) file.allocator = layout::to_string(terms.allocator);
  if (file.plan.steps.empty()) return;
  if (terms.kind == Footprint::reserved)
    file.claims.reserved = layout::reserved_bytes(graph, file.plan, terms.allocator);
  if (terms.kind == Footprint::arena)
    layout::write_offsets(file, place(graph, file.plan, file.budget), kAlignment);
}

}  // namespace lowtide::driver
