// Block solvers that apply a solver of graphs to the graph of the block.
#pragma once

#include <memory>
#include <vector>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

// `cut`, `search`, `twremat`.
std::vector<std::unique_ptr<BlockSolver>> make_flat();

}  // namespace lowtide::solve::hierarchy
