// A label of an op in 128 bits, without its neighbours: equal for two ops that differ only in
// links, names and times. Private to the room.
#pragma once

#include <span>

#include "lowtide/graph/alike.h"
#include "lowtide/graph/digest.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// The label of a tensor: its bytes, and with Alike::code its shape and number type.
Digest tensor_label(const Tensor& tensor, Alike alike = Alike::code);
// The label of an op; blocks.h lists the properties. `tensors`: the labels of the op's inputs, then
// of its outputs, in the graph's order. A caller that labels many ops computes those of the tensors
// once.
Digest op_label(const Graph& graph, OpId op, std::span<const Digest> tensors,
                Alike alike = Alike::code);

}  // namespace lowtide
