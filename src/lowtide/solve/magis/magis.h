// The search of MAGIS over states: fission of regions, recomputation, transfers (R. Chen et al.,
// ASPLOS 2024). Any graph, both orders and both objectives; transforms if the context allows them.
// A unit of work is about a microsecond of estimates, or an op of a transformed graph. See
// search.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::magis {

std::unique_ptr<Solver> make_magis();

}  // namespace lowtide::solve::magis
