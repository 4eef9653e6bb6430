// Chooses options of the inner blocks by a price of a saved byte.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

std::unique_ptr<BlockSolver> make_prices();

}  // namespace lowtide::solve::hierarchy
