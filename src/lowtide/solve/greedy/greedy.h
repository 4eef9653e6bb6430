// Greedy rematerialization as in XLA (Kumar et al., NeurIPS 2019): when an op would exceed the
// budget, the op whose recomputation frees most is recomputed before its next use. Any graph, both
// orders; least time only. A unit of work is a few visited links. See greedy.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::greedy {

std::unique_ptr<Solver> make_greedy();

}  // namespace lowtide::solve::greedy
