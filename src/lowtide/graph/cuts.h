// Where a graph falls apart: single ops, and single tensors, that everything must pass.
#pragma once

#include <cstddef>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

// The ops comparable with every other op: each other op reaches it or is reached by it, so every
// topological order has the same ops before it. In the order in which all orders have them. Linear.
std::vector<OpId> cut_ops(const Graph& graph);

// Between positions `position` - 1 and `position` of the given order only `tensor` crosses.
struct TensorCut {
  std::size_t position = 0;
  TensorId tensor;
  bool operator==(const TensorCut&) const = default;
};

// The positions strictly inside [first, last) of the given order that exactly one tensor crosses
// which is made and read within the range: made before the position, read at it or after it. What
// comes into the range, or is read only behind it, does not count. In the order of positions.
// Linear in the links of the range and the readers of what it makes.
std::vector<TensorCut> tensor_cuts(const Graph& graph, std::size_t first, std::size_t last);

}  // namespace lowtide
