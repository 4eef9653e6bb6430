// The graph that transforms make of another, and which of its ops and tensors the file's indices
// name.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// A transform that is not legal on its graph: an answer about the two, where bad input would be one
// about the transform alone. The place is "transforms/i", the reason names op and dimension.
class TransformRefused : public InputError {
 public:
  using InputError::InputError;
};

// What an op is to a split that made it: part `part` of `transform`, or done once before the parts.
struct PartOf {
  static constexpr std::int32_t kBefore = -1;
  std::int32_t transform = 0, part = 0;
  bool operator==(const PartOf&) const = default;
};

struct TransformedGraph {
  Graph graph;
  IdVector<OpId, OpId> op_index;              // the file's, of each op of `graph`
  IdVector<TensorId, TensorId> tensor_index;  // likewise
  std::vector<OpId> ops;                      // by the file's index; invalid for what is gone
  std::vector<TensorId> tensors;
  IdVector<OpId, std::vector<PartOf>> parts;  // outermost split first; empty outside of them
  // For each op the op of the original graph that it is, or computes a part of, or joins the parts
  // of a result of; invalid where there is none.
  IdVector<OpId, OpId> source;
};

}  // namespace lowtide
