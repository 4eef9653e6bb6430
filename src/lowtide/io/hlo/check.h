// Whether the instructions of a computation fit their operands. Private to the room.
#pragma once

#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// InputError (place: the instruction) for a wrong number of operands, a tuple or an element of one
// whose shape is not that of the operands, and a computation that takes or returns other shapes
// than its caller says.
void check_module(const Module& module);

}  // namespace lowtide::io::hlo
