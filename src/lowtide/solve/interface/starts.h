// Start plans of constructive solvers.
#pragma once

#include <vector>

#include "lowtide/solve/interface/context.h"

namespace lowtide::solve {

// The topological orders to start from: the given order, and with a free order also that of the
// first computations of the best start plan, if there is one.
std::vector<std::vector<OpId>> orders_to_try(const Context& context);

}  // namespace lowtide::solve
