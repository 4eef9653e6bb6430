// Ops that draw random numbers. Private to the folder.
#pragma once

#include "lowtide/graph/graph.h"

namespace lowtide {

// Whether the op draws random numbers: decided by its kind, and for ops that may or may not draw
// (attention with dropout) by their dropout probability.
bool draws(const Op& op);

}  // namespace lowtide
