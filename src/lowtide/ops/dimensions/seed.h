// From what a user names to an axis.
#pragma once

#include <cstdint>
#include <optional>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/axis.h"

namespace lowtide::dimensions {

// A dimension of a tensor by its shape, as whoever asks names it.
struct Seed {
  TensorId tensor;
  std::int64_t dim = 0;
};

// The tensor itself as an operand, all of it: as the op that makes it says, or one that reads it;
// without either, row-major.
Operand layout_of(const Graph& graph, TensorId id);

// InputError (place: the tensor) if there is no such dimension, it has one slice only, or it is no
// axis of its storage.
Axis axis_of(const Graph& graph, const Seed& seed);
// The same, or nothing.
std::optional<Axis> find_axis(const Graph& graph, const Seed& seed);

}  // namespace lowtide::dimensions
