// The structural lower bound on the peak of every plan.
#pragma once

#include "lowtide/plan/problem.h"

namespace lowtide::solve {

// The maximum of: the bytes at the start; the bytes that must be live at the end; and for every op
// the bytes that must be live while it runs. Inputs that the caller holds always count. Without
// transfers all inputs that are not releasable count, and with the given order also tensors that
// cannot be recomputed, until their last use; a host budget subtracts from these at most its own
// size. Linear in the links.
Bytes peak_floor(const Problem& problem);

// A floor that no transform can lower: the bytes that are live from the start and may never be
// freed.
Bytes always_live(const Problem& problem);

}  // namespace lowtide::solve
