// What an op is by itself, in 128 bits: equal for two ops that differ only in what they are linked
// to, in names and in times. Private to the room.
#pragma once

#include <span>

#include "lowtide/graph/alike.h"
#include "lowtide/graph/digest.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// Of bytes, and of code shape and number type.
Digest tensor_label(const Tensor& tensor, Alike alike = Alike::code);
// blocks.h lists what enters. `tensors`: the labels of the op's inputs, then of its outputs, in the
// graph's order; whoever labels many ops makes those of the tensors once.
Digest op_label(const Graph& graph, OpId op, std::span<const Digest> tensors,
                Alike alike = Alike::code);

}  // namespace lowtide
