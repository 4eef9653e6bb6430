// Gaps dropped by the price of a byte: a plan at once, from the state and the moves of the search.
// Least time within a budget, both orders, with a link or without. A unit of work is as of the
// search, or sixteen gaps looked at. See drop.cpp.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::search {

std::unique_ptr<Solver> make_drop();

Support drop_supports(const Problem& problem);
// The same from each of these orders, all topological; offers what it comes to.
void drop_from(std::span<const std::vector<OpId>> orders, Context& context);

}  // namespace lowtide::solve::search
