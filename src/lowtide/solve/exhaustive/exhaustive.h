// Searches all schedules of a small graph: see exhaustive.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::exhaustive {

std::unique_ptr<Solver> make_exhaustive();

}  // namespace lowtide::solve::exhaustive
