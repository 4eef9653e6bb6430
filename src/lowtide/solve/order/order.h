// Reordering only: nothing is computed twice. Any graph, free order only, both objectives. A unit
// of work is an item of a heap, or four visited ops of a piece. See order.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::order {

std::unique_ptr<Solver> make_order();

}  // namespace lowtide::solve::order
