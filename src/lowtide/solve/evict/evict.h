// Eviction with the future known: dynamic tensor rematerialization, offline. Any graph, both
// orders; least time only. A unit of work is a quarter of a computed op, or a visited item of a
// heap. See evict.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::evict {

std::unique_ptr<Solver> make_evict();

}  // namespace lowtide::solve::evict
