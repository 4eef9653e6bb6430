// The anytime search over sequences: Lowtide's own solver. Least time within a budget, both orders,
// without transfers. A unit of work is sixteen insertions, removals or blocks of its memory profile
// looked at: less than a microsecond. See search.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::local::search {

std::unique_ptr<Solver> make_search();

}  // namespace lowtide::solve::local::search
