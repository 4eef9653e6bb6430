// Sequences whose first computations follow the order of the graph. Private to the solver.
#pragma once

#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::hierarchy {

// The sequence with its first computations in the given order. What it computes again comes before
// the same first computation as there, unless it has not been computed at all by then; what then
// serves nothing is left out. Linear in the links.
std::vector<OpId> in_given_order(const Problem& problem, std::span<const OpId> sequence);

}  // namespace lowtide::solve::hierarchy
