// Greedy rematerialization as in XLA (Kumar et al., NeurIPS 2019): wherever an op would pass the
// budget, the op whose repetition frees most is computed again before its next use. Any graph, both
// orders; least time only. A unit of work is a few links looked at. See greedy.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::greedy {

std::unique_ptr<Solver> make_greedy();

}  // namespace lowtide::solve::greedy
