// The greedy rematerialization of XLA, as Kumar et al. describe it. See greedy.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/solver.h"

namespace lowtide {

std::unique_ptr<Solver> make_greedy();

}  // namespace lowtide
