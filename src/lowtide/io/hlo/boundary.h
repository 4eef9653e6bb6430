// What a computation takes and returns: its parameters, its result, and the buffers that both
// share. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/io/hlo/body.h"
#include "lowtide/io/hlo/module.h"

namespace lowtide::io::hlo {

// Makes parameters stay, and the leaves of the result outputs. Returns, for each of these leaves,
// the leaf of the parameters, counted over all, that it is, unchanged; or -1.
std::vector<std::int64_t> set_outputs(Body& body);

// Of the entry: donated parameters may be freed; those of input_output_alias give their buffers to
// outputs. InputError (place: the module) for parameters or arrays that the entry does not have.
void donate(const Module& module, Body& body);

}  // namespace lowtide::io::hlo
