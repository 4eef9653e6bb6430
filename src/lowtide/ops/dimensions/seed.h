// Turns a user's name for a dimension into an axis.
#pragma once

#include <cstdint>
#include <optional>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/axis.h"

namespace lowtide::dimensions {

// A dimension of a tensor, by the tensor's shape, as the user names it.
struct Seed {
  TensorId tensor;
  std::int64_t dim = 0;
};

// The tensor as an operand that covers all of it: in the layout of its producer or of a reader, or
// row-major if neither states one.
Operand layout_of(const Graph& graph, TensorId id);

// InputError (place: the tensor) if the dimension does not exist, has only one slice, or is not an
// axis of its storage.
Axis axis_of(const Graph& graph, const Seed& seed);
// The same, or empty.
std::optional<Axis> find_axis(const Graph& graph, const Seed& seed);

}  // namespace lowtide::dimensions
