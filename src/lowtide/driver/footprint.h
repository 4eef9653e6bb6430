// Budgets of what counts: of the bytes that a plan takes where it lies, instead of those that are
// live. See footprint.cpp.
//
//   plan within a live budget  ->  measure the plans that are as good  ->  the shortest that fits
//           ^                                                                  |
//           +------- a smaller live budget, by the ratio of what is taken -----+
#pragma once

#include <functional>
#include <optional>

#include "lowtide/driver/driver.h"
#include "lowtide/layout/allocator/settings.h"
#include "lowtide/layout/place_plan.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide::driver {

// What PyTorch's allocators align tensors to.
inline constexpr Bytes kArenaAlignment{512};

// What the budget limits.
struct FootprintTerms {
  Footprint kind = Footprint::live;
  layout::AllocatorSettings allocator = {};  // for `reserved`
  Bytes alignment = kArenaAlignment;         // of offsets, for `arena`
};

// What a plan takes of what the budget limits.
struct Taken {
  Bytes bytes;                                          // no less than its peak
  std::optional<layout::PlanPlacement> placement = {};  // for `arena`
};
// Of a plan that keeps every rule; on the caller's thread. Counts its work in the limits.
using Measure = std::function<Taken(const Plan&, Limits&)>;

struct FootprintAnswer {
  // To the question, where the budget limits what is measured. Bounds are those of live bytes,
  // which no footprint is below.
  Answer answer;
  std::optional<Taken> taken;  // by its plan
  std::optional<Bytes> least;  // by any plan that was measured
  int rounds = 0;              // solves, each for a budget of live bytes
};

// Throws as `solve` does, and InputError for a question that is not of least time. The watcher sees
// plans whose live bytes are within the budget, before they are measured.
FootprintAnswer solve_within(const solve::SolverTable& solvers, const Question& question,
                             const Request& request, const Measure& measure);
// The same by the measure of these terms; for `live` what `solve` says.
FootprintAnswer solve_within(const solve::SolverTable& solvers, const Question& question,
                             const Request& request, const FootprintTerms& terms);

// The file with what its plan takes by these terms: the claim of it, and offsets or the allocator's
// settings.
void claim_footprint(PlanFile& file, const FootprintTerms& terms,
                     const std::optional<Taken>& taken);

}  // namespace lowtide::driver
