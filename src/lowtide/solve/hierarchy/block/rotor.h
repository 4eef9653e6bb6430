// The dynamic program over chains with several options for a stage. Levels with a backward whose
// forward is a chain, of any length. A unit of work is about a microsecond. See rotor.cpp.
#pragma once

#include <cstddef>
#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

// `slots`: the number of units into which memory is divided.
std::unique_ptr<BlockSolver> make_rotor(std::size_t slots = 500);

}  // namespace lowtide::solve::hierarchy
