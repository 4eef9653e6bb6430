// The anytime search over sequences: Lowtide's own solver. Least time within a budget, both orders,
// without transfers. A unit of work is about a microsecond: an insertion or removal, or sixteen
// blocks of its memory profile looked at. See search.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/solver.h"

namespace lowtide {

std::unique_ptr<Solver> make_search();

}  // namespace lowtide
