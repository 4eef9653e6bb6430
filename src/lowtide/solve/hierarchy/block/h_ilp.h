// HiRemate's integer program of a level, solved by HiGHS. For levels of up to about forty nodes. A
// unit of work is a thousandth of a simplex iteration, or with a time limit a microsecond. See
// h_ilp.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

// Its options have found_by "h_ilp" if they are optimal in the program, otherwise "h_ilp, timed
// out".
std::unique_ptr<BlockSolver> make_h_ilp();

}  // namespace lowtide::solve::hierarchy
