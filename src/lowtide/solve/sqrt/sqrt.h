// Segments of Chen et al., 2016, for training graphs: about sqrt(n) tensors of the forward are
// kept, the rest is computed again, segment by segment, when the backward needs it. Takes any
// graph, but saves only where something like a forward comes before something like a backward; both
// orders; least time only. A unit of work is an op of a sequence offered. See sqrt.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::sqrt {

std::unique_ptr<Solver> make_sqrt();

}  // namespace lowtide::solve::sqrt
