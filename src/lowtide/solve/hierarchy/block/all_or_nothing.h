// Block solvers for the two options of every block: save all tensors, or recompute all.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

std::unique_ptr<BlockSolver> make_save_all();
std::unique_ptr<BlockSolver> make_recompute_all();

}  // namespace lowtide::solve::hierarchy
