// Proves how little time or memory any plan can take; its plans are by-products. Any graph, both
// orders, with a machine or without; least time only. A unit of work is 256 arcs or gaps, or 512
// terms of a linear program, looked at. See bounds.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::bounds {

std::unique_ptr<Solver> make_bounds();

}  // namespace lowtide::solve::bounds
