// Calls as what they call: XLA's GPU compiler puts most of a step into computations that the entry
// calls once each (command buffers). Private to the room.
#pragma once

#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// Replaces each `call` of the entry, and of what is put in its place, by the instructions of the
// computation that it calls, if nothing else calls that; which has no instructions then. The module
// has been checked, and its calls form no cycle.
void inline_calls(Module& module);

}  // namespace lowtide::io::hlo
