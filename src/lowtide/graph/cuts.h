// Cuts of a graph: single ops, and single tensors, through which every path must pass.
#pragma once

#include <cstddef>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

// The ops that are comparable with every other op: each other op reaches such an op or is reached
// by it, so every topological order has the same ops before it. Sorted in that order. Linear.
std::vector<OpId> cut_ops(const Graph& graph);

// At `position` only `tensor` is live across: made before the position, and read at it or after it.
struct TensorCut {
  std::size_t position = 0;
  TensorId tensor;
  bool operator==(const TensorCut&) const = default;
};

// The positions strictly inside [first, last) of the given order at which exactly one tensor that
// is made and read within the range is live across the position. Tensors made before the range, and
// those read only after it, do not count. Ascending. Linear in the links of the range and the
// readers of its tensors.
std::vector<TensorCut> tensor_cuts(const Graph& graph, std::size_t first, std::size_t last);

}  // namespace lowtide
