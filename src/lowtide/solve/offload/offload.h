// Greedy swapping: tensors leave for the host between two of their uses until the budget is kept.
// Any graph with a machine, both orders; least time only. A unit of work is an event or a link of
// the sequence looked at, or a gap of a tensor weighed. See offload.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::offload {

std::unique_ptr<Solver> make_offload();

}  // namespace lowtide::solve::offload
