// MAGIS' search over states: regions in parts, computations again, transfers (R. Chen et al.,
// ASPLOS 2024). Any graph, both orders and both objectives; transforms where the context allows
// them. A unit of work is about a microsecond of estimating a state, or an op of a graph that is
// made. See search.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::magis {

std::unique_ptr<Solver> make_magis();

}  // namespace lowtide::solve::magis
