// A choice among the options of the blocks inside, by what a saved byte is worth.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

std::unique_ptr<BlockSolver> make_prices();

}  // namespace lowtide::solve::hierarchy
