// Orders brought within the budget: gaps before uses are dropped or swapped by the price of a byte.
// Least time within a budget, both orders, with a link or without. A unit of work is as of the
// search, or sixteen gaps looked at. See drop_gaps.cpp.
#pragma once

#include <span>
#include <vector>

#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::local {

Support supports_dropping(const Problem& problem);
// From each of these orders, all topological; offers what it comes to.
void drop_gaps(std::span<const std::vector<OpId>> orders, Context& context);

}  // namespace lowtide::solve::local
