// HiRemate's integer program of a level, by HiGHS. Levels of some forty nodes; needs HiGHS. A unit
// of work is a thousandth of a simplex iteration, or under a clock a microsecond. See h_ilp.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

// What it finds was found by "h_ilp" where that is the program's optimum, or else by
// "h_ilp, timed out".
std::unique_ptr<BlockSolver> make_h_ilp();

}  // namespace lowtide::solve::hierarchy
