// Brings the given order, and that of the best start plan, within the budget by the price of a
// byte. See drop.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::local::drop {

std::unique_ptr<Solver> make_drop();

}  // namespace lowtide::solve::local::drop
