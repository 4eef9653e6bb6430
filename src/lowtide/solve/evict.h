// Eviction under pressure with the future known: dynamic tensor rematerialization, offline. See evict.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/solver.h"

namespace lowtide {

std::unique_ptr<Solver> make_evict();

}  // namespace lowtide
