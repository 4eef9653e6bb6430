// The region of a split: its ops, how each is sliced, and which tensors leave it. All ids are those
// of the graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/follow.h"
#include "lowtide/ops/dimensions/seed.h"
#include "lowtide/transforms/transformed_graph.h"

namespace lowtide {

struct AskedRegion {
  std::vector<OpId> ops;
  std::vector<dimensions::Seed> axes;
  std::int64_t parts = 2;
  bool exact = false;  // claimed: results are bit-identical
};

// The names of ops and tensors in messages.
struct Labels {
  std::function<std::string(OpId)> op;
  std::function<std::string(TensorId)> tensor;
};
Labels labels_of(const Graph& graph);  // the graph must outlive them

struct Region {
  std::vector<OpId> ops;  // in the given order
  std::vector<std::uint8_t> inside;
  std::vector<std::uint8_t> above;  // ops outside on which some op of the region depends
  std::int64_t parts = 0;
  dimensions::Reach reach;
  // Tensors that are made in parts (split or partial) and needed outside, in the order of their
  // producers. A tensor that is the same in every part needs no join.
  std::vector<TensorId> joined;
  std::vector<std::uint8_t> is_joined;  // by tensor

  const dimensions::Carry& carry(OpId op) const { return *reach.carries[op.index()]; }
  // The slices of a part. `longest`: the most slices of the tensors that are split together; parts
  // of such a tensor are equal, except that the last may be shorter. The other overloads: the
  // slices that an op sees, or a tensor has.
  dimensions::Slices slices(std::int64_t longest, std::int64_t part) const;
  dimensions::Slices slices(const dimensions::Carry& carry, std::int64_t part) const;
  dimensions::Slices slices(const dimensions::TensorState& tensor, std::int64_t part) const;
};

// Throws TransformRefused if the split is illegal: an op has no axis, mutates or is a barrier; the
// region is not convex; a part would have fewer than two slices; or bits may change although
// `exact` is claimed.
Region region_of(const Graph& graph, const AskedRegion& asked, const Labels& labels);

// Whether the tensor is made by the region, once for all parts.
bool is_made_before(const Graph& graph, const Region& region, TensorId tensor);
// Whether the sum of this tensor over the parts is accumulated in single precision.
bool widens(const Graph& graph, const Region& region, TensorId tensor);
// Whether a tensor that the region makes is read outside of it, or is a graph output.
bool is_needed_outside(const Graph& graph, const Region& region, TensorId tensor);
// Whether an op of the region does work once before the parts, and whether it runs in the parts.
bool runs_before(const Graph& graph, const Region& region, OpId op);
bool runs_in_parts(const Graph& graph, const Region& region, OpId op);
// Whether the region makes the tensor part by part.
bool is_made_in_parts(const Graph& graph, const Region& region, TensorId tensor);

// One part of an op: its operands and results, restricted to the slices of the part but still on
// the graph's tensors, and the arguments that depend on the slices.
struct PartOfOp {
  std::vector<Operand> operands, results;
  std::vector<Argument> arguments;
};
// Throws TransformRefused if a part would have to copy an operand.
PartOfOp part_of_op(const Graph& graph, const Region& region, OpId op, std::int64_t part,
                    const Labels& labels);

}  // namespace lowtide
