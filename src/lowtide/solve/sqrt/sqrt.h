// Segments of Chen et al., 2016, for training graphs: about sqrt(n) tensors of the forward are
// kept, and the rest is recomputed, segment by segment, when the backward needs it. Accepts any
// graph, but saves memory only if a forward precedes a backward; both orders; least time only. A
// unit of work is an op of an offered sequence. See sqrt.cpp.
#pragma once

#include <memory>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::sqrt {

std::unique_ptr<Solver> make_sqrt();

}  // namespace lowtide::solve::sqrt
