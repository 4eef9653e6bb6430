// What an op is by itself, in 128 bits: equal for two ops that differ only in what they are linked
// to, in names and in times. Private to the room.
#pragma once

#include "lowtide/graph/digest.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// blocks.h lists what enters. Tensors enter by their bytes, shape and number type, each in its
// place among the op's inputs or outputs.
Digest op_label(const Graph& graph, OpId op);

}  // namespace lowtide
