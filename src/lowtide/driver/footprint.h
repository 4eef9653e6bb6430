// Budgets of what counts: of the bytes that a plan takes where it lies (the arena of its offsets,
// or what an allocator reserves for it), instead of those that are live. See footprint.cpp.
#pragma once

#include <functional>
#include <optional>

#include "lowtide/driver/driver.h"
#include "lowtide/layout/allocator/settings.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide::driver {

// What the budget limits.
struct FootprintTerms {
  Footprint kind = Footprint::live;
  layout::AllocatorSettings allocator = {};  // for `reserved`
};

// What a plan takes of what the budget limits: no less than its peak. Asked of plans that keep
// every rule, on the caller's thread.
using Measure = std::function<Bytes(const Plan&)>;

struct FootprintAnswer {
  // To the problem, where the budget limits what is measured. The bound on the duration is that of
  // the problem itself, of which more plans are.
  Answer answer;
  std::optional<Bytes> taken;  // by the plan
  std::optional<Bytes> least;  // by any plan that was measured
  int rounds = 0;              // solves, each for a budget of live bytes
};

// Throws as `solve` does, and InputError for a problem that is not of least time.
FootprintAnswer solve_within(const solve::SolverTable& solvers, const Problem& problem,
                             const Request& request, const Measure& measure);
// The same by the measure of these terms; for `live` what `solve` says.
FootprintAnswer solve_within(const solve::SolverTable& solvers, const Problem& problem,
                             const Request& request, const FootprintTerms& terms);

// The file with what its plan takes by these terms: the claim of it, and offsets or the allocator's
// settings. Nothing without a plan.
void claim_footprint(PlanFile& file, const Graph& graph, const FootprintTerms& terms);

}  // namespace lowtide::driver
