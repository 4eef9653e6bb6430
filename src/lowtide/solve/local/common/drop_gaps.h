// Brings orders within the budget: evicts tensors over retention gaps by the price of a byte. Least
// time within a budget, both orders, with or without a link. A unit of work is that of the search,
// or sixteen visited gaps. See drop_gaps.cpp.
#pragma once

#include <span>
#include <vector>

#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::local {

Support supports_dropping(const Problem& problem);
// Starts from each of these topological orders, and offers the results.
void drop_gaps(std::span<const std::vector<OpId>> orders, Context& context);

}  // namespace lowtide::solve::local
