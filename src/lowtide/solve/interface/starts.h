// Start plans of constructive solvers.
#pragma once

#include <vector>

#include "lowtide/solve/interface/context.h"

namespace lowtide::solve {

// The topological orders to build on: the graph's own and, if the problem leaves the order free and
// there is a start, that of the first computations of the best start.
std::vector<std::vector<OpId>> orders_to_try(const Context& context);

}  // namespace lowtide::solve
