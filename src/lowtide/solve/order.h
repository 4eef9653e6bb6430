// Re-ordering for memory alone: nothing is computed twice. See order.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/solver.h"

namespace lowtide {

std::unique_ptr<Solver> make_order();

}  // namespace lowtide
