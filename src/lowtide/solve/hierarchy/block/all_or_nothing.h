// The two options that every block has: to save all, and to compute all again.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

std::unique_ptr<BlockSolver> make_save_all();
std::unique_ptr<BlockSolver> make_recompute_all();

}  // namespace lowtide::solve::hierarchy
