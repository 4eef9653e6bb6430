// The anytime search over sequences. Least time within a budget, both orders, with or without
// transfers. A unit of work is sixteen insertions, removals or visited blocks of the memory
// profile: less than a microsecond. See search.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::local::search {

std::unique_ptr<Solver> make_search();

}  // namespace lowtide::solve::local::search
