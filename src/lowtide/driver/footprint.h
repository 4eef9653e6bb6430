// Budgets of what counts: of the bytes that a plan takes where it lies, instead of those that are
// live. See footprint.cpp.
//
//   plan within a live budget  ->  measure the plans found on the way  ->  the shortest that fits
//           ^                                                                  |
//           +-------- another live budget (live_budgets.h), another seed ------+
#pragma once

#include <functional>
#include <optional>

#include "lowtide/driver/driver.h"
#include "lowtide/layout/allocator/settings.h"
#include "lowtide/plan/frontier.h"
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

// Of a plan that keeps every rule; on the caller's thread. Counts its work in the limits.
using Measure = std::function<Taken(const Plan&, Limits&)>;

struct FootprintAnswer {
  // To the question, where the budget limits what is measured. Bounds are those of live bytes,
  // which no footprint is below.
  Answer answer;
  std::optional<Taken> taken;  // by its plan
  Frontier measured;           // the best of all plans that were measured, whatever they take
  int rounds = 0;              // solves, each for a budget of live bytes
};

// Throws as `solve` does, and InputError for a question that is not of least time. The watcher sees
// plans whose live bytes are within the budget, before they are measured. `enough`: a plan that
// fits and is at most this long ends the search.
FootprintAnswer solve_within(const solve::SolverTable& solvers, const Question& question,
                             const Request& request, const Measure& measure,
                             Ticks enough = Ticks(0));
// The same by the measure of these terms; for `live` what `solve` says, to its end.
FootprintAnswer solve_within(const solve::SolverTable& solvers, const Question& question,
                             const Request& request, const FootprintTerms& terms,
                             Ticks enough = Ticks(0));

// The measure of these terms, for a budget of `capacity` bytes, below which lower arenas do not
// matter; empty for `live`. The graph must outlive it.
Measure measure_of(const Graph& graph, const FootprintTerms& terms, Bytes capacity,
                   std::uint64_t seed);

// The file with what its plan takes by these terms: the claim of it, and offsets or the allocator's
// settings.
void claim_footprint(PlanFile& file, const FootprintTerms& terms,
                     const std::optional<Taken>& taken);

}  // namespace lowtide::driver
