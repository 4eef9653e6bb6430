// The forward and backward ops of a training step, and the layer to which each belongs.
#pragma once

#include <cstdint>

#include "lowtide/base/id_vector.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

enum class Phase : std::uint8_t { forward, backward };

// A layer is a forward op with its backward ops.
//
// The backward consists of the ops whose phase is "backward", and of all ops that depend on one of
// them or on a barrier. So no forward op depends on a backward op. All other ops are forward. If
// one of the two sets is empty, the whole graph is forward.
struct Phases {
  IdVector<OpId, Phase> of;
  // The forward op of each op's layer: itself for a forward op. Invalid for an op without a layer:
  // the barrier or the loss between forward and backward, and ops after the backward (other phases,
  // such as the optimizer's, and all that depends on them).
  IdVector<OpId, OpId> layer;
  bool has_backward = false;
};

// The forward op of a backward op is derived from what the backward op reads: the backward of an op
// reads its output or its inputs, parameters included. Of several candidates, the one with most
// common tensors counts, then one of the same origin, then the latest. A backward op that reads
// only gradients belongs to the layer of its origin, or to that of the op that made them.
//
// Along every dependency between backward ops the positions of their layers in the given order fall
// or stay the same. So the layers have one order that the forward ops follow and the backward ops
// reverse. Near-linear.
Phases phases_of(const Graph& graph);

}  // namespace lowtide
