// Sequences whose first computations follow the order of the graph. Private to the solver.
#pragma once

#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::hierarchy {

// The sequence, changed such that its first computations follow the given order. Recomputations
// stay before the same first computation, if their op has been computed by then. Computations that
// no later op needs are removed. Linear in the links.
// serves nothing is left out. Linear in the links.
std::vector<OpId> in_given_order(const Problem& problem, std::span<const OpId> sequence);

}  // namespace lowtide::solve::hierarchy
