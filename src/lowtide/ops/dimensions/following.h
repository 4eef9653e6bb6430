// The state of an axis that is followed, shared by both passes over a graph. Private to the folder;
// see follow.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/components.h"
#include "lowtide/ops/dimensions/reach.h"

namespace lowtide::dimensions {

inline bool contains(const std::vector<std::size_t>& list, std::size_t item) {
  return std::ranges::find(list, item) != list.end();
}

class Following {
 public:
  // `region`: the ops that may carry; all if it is empty.
  Following(const Graph& graph, std::span<const OpId> region);

 protected:
  TensorState& state(const Operand& operand) { return reach_.tensors[operand.tensor.index()]; }
  // Whether it is still open if the op carries an axis or stops it.
  bool open(OpId op) const {
    return may_carry_[op.index()] && !reach_.carries[op.index()] && !reach_.stops[op.index()];
  }

  void stop(OpId op, StopCause cause, TensorId tensor, std::string reason) {
    reach_.carries[op.index()].reset();
    reach_.stops[op.index()] = Stop{cause, tensor, std::move(reason)};
  }

  // False if the op cannot be followed, since it changes an operand in place or does not describe
  // all of its tensors. Then the op stops the axis.
  bool described(OpId id);

  const Graph& graph_;
  std::vector<bool> may_carry_;  // ops
  Reach reach_;
  std::unordered_map<OpId, Stop> misplaced_;  // for ops that the axis reaches in no other way
  Components cut_together_;                   // tensors
  std::vector<std::optional<std::size_t>> cut_with_;  // by op: a tensor that the op divides
};

// The second pass.
Reach settle(Following followed);

}  // namespace lowtide::dimensions
