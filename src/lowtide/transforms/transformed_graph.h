// The result of transforms: a graph, and the mapping between its ids and file indices.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// A transform that is not legal on its graph, as opposed to one that is wrong on any graph
// (InputError). The place is "transforms/i"; the reason names op and dimension.
class TransformRefused : public InputError {
 public:
  using InputError::InputError;
};

// The role of an op in a split: it belongs to part `part` of the transform with this index, or runs
// once before all parts (kBefore).
struct PartOf {
  static constexpr std::int32_t kBefore = -1;
  std::int32_t transform = 0, part = 0;
  bool operator==(const PartOf&) const = default;
};

struct TransformedGraph {
  Graph graph;
  IdVector<OpId, OpId> op_index;              // file index of each op of `graph`
  IdVector<TensorId, TensorId> tensor_index;  // likewise
  std::vector<OpId> ops;                      // by file index; invalid for removed ops
  std::vector<TensorId> tensors;              // likewise
  IdVector<OpId, std::vector<PartOf>> parts;  // outermost split first; empty outside of splits
  // For each op, the op of the original graph that it is, computes a part of, or joins the parts
  // of; invalid if there is none.
  IdVector<OpId, OpId> source;
};

}  // namespace lowtide
