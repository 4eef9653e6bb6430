// Ops that draw random numbers. Private to the folder.
#pragma once

#include "lowtide/graph/graph.h"

namespace lowtide {

// By the kind, as PyTorch names them; those that may or may not draw (attention with dropout) by
// the probability among their arguments.
bool draws(const Op& op);

}  // namespace lowtide
