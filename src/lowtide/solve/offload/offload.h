// Greedy swapping: tensors are offloaded between two of their uses until the budget is kept. Any
// graph with a machine, both orders; least time only. A unit of work is a visited event or link of
// the sequence, or a scored gap. See offload.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::offload {

std::unique_ptr<Solver> make_offload();

}  // namespace lowtide::solve::offload
