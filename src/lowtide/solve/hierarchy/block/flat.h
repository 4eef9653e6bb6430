// Block solvers made of solvers of graphs.
#pragma once

#include <memory>
#include <vector>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

// `cut`, `search`, `twremat`.
std::vector<std::unique_ptr<BlockSolver>> make_flat();

}  // namespace lowtide::solve::hierarchy
