// The given order, every tensor freed after its last use, as frameworks do. Any graph, both orders,
// both objectives. A unit of work is an op. See given.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::given {

std::unique_ptr<Solver> make_given();

}  // namespace lowtide::solve::given
