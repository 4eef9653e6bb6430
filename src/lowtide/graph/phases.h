// Forward and backward ops of a training step, and which of them belong together.
#pragma once

#include <cstdint>

#include "lowtide/base/id_vector.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

enum class Phase : std::uint8_t { forward, backward };

// A layer is a forward op with the backward ops that undo it.
//
// backward: what depends on a barrier, or on an op whose phase is "backward", and those ops
// themselves; so no forward op depends on a backward one. All others are forward; without such ops,
// or without others, the whole graph is.
struct Phases {
  IdVector<OpId, Phase> of;
  // The forward op of each op's layer: itself for a forward op. Invalid for an op that stands
  // alone: the barrier or the loss between forward and backward, and what comes behind the backward
  // (ops of other phases, such as the optimizer's, and all that depends on them).
  IdVector<OpId, OpId> layer;
  bool has_backward = false;
};

// Where nothing says which forward op a backward op belongs to, it follows from what it reads: an
// op's backward reads its output, or what it read itself, parameters included. Of several such
// forward ops the one with most of what is read counts, then one of the same origin, then the
// latest. What reads only gradients goes by its origin, or with the op that made them.
//
// Along every dependency between backward ops the layers' positions in the given order fall or stay
// the same: layers can be put in one order that the forward ops follow and the backward ops
// reverse. Near-linear.
Phases phases_of(const Graph& graph);

}  // namespace lowtide
