// The graph that a list of transforms makes: an ordinary one, which all that plans, prices, bounds
// and draws graphs takes unchanged.
//
// Each transform is done on the graph that those before it made, and names ops and tensors by the
// file's indices. What it makes gets new ones, after all that there are, in the order in which the
// made graph's own order makes it; none is used twice, and those of what is gone stay unused. In
// the made graph indices are dense again: its ops and tensors by their file's index, ascending.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/transforms/transform.h"

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

struct Transformed {
  Graph graph;
  IdVector<OpId, OpId> op_index;              // the file's, of each op of `graph`
  IdVector<TensorId, TensorId> tensor_index;  // likewise
  std::vector<OpId> ops;                      // by the file's index; invalid for what is gone
  std::vector<TensorId> tensors;
  IdVector<OpId, std::vector<PartOf>> parts;  // outermost split first; empty outside of them
};

// TransformRefused for what is not legal; InputError, with the same place, for what check_complete
// refuses and for a price that this graph needs and the transform lacks.
Transformed apply_transforms(const Graph& graph, std::span<const Transform> transforms);

}  // namespace lowtide
