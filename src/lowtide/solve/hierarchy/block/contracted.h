// Local search on the graph whose ops are the halves of inner blocks.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

std::unique_ptr<BlockSolver> make_contracted();

}  // namespace lowtide::solve::hierarchy
