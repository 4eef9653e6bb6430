// The structural lower bound on the peak of every plan.
#pragma once

#include "lowtide/plan/problem.h"

namespace lowtide::solve {

// At least: the bytes that stand there at the start; those that must stand there at the end; and
// for every op what lives while it runs. Inputs that the caller holds count always; without
// transfers so does every input that is not releasable, and with the order given too, so does what
// cannot be made again until its last use; a host budget takes off those no more than it leaves
// room for. Linear in the links.
Bytes peak_floor(const Problem& problem);

// What no transform can make less: what is live from the start and may never leave.
Bytes always_live(const Problem& problem);

}  // namespace lowtide::solve
