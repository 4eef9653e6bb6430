// A split as its graph sees it: which ops, how each is cut, what leaves the region. All ids are
// those of the graph.
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
  bool exact = false;  // it is claimed that no bit changes
};

// How messages call ops and tensors.
struct Labels {
  std::function<std::string(OpId)> op;
  std::function<std::string(TensorId)> tensor;
};
Labels labels_of(const Graph& graph);  // which must outlive them

struct Region {
  std::vector<OpId> ops;  // in the given order
  std::vector<std::uint8_t> inside;
  std::vector<std::uint8_t> above;  // outside, and before some op of the region
  std::int64_t parts = 0;
  dimensions::Reach reach;
  // Split or partial, and needed outside; in the order of their making. What is the same in every
  // part needs no join.
  std::vector<TensorId> joined;
  std::vector<std::uint8_t> is_joined;  // by tensor

  const dimensions::Carry& carry(OpId op) const { return *reach.carries[op.index()]; }
  // What a part has of the longest of the tensors that are cut together: equal parts, but for the
  // last, which may be shorter; and of those that an op sees, or a split tensor has.
  dimensions::Slices slices(std::int64_t longest, std::int64_t part) const;
  dimensions::Slices slices(const dimensions::Carry& carry, std::int64_t part) const;
  dimensions::Slices slices(const dimensions::TensorState& tensor, std::int64_t part) const;
};

// TransformRefused if the split is not legal: an op that has no axis, mutates or is a barrier; a
// region that is not convex; an axis that does not go into so many parts of two or more; bits that
// change although it is claimed that none does.
Region region_of(const Graph& graph, const AskedRegion& asked, const Labels& labels);

// Whether the tensor is made by the region, once for all parts.
bool is_made_before(const Graph& graph, const Region& region, TensorId tensor);
// Whether a sum over the parts of this tensor is kept in single precision until the last.
bool widens(const Graph& graph, const Region& region, TensorId tensor);
// Of a tensor that the region makes.
bool is_needed_outside(const Graph& graph, const Region& region, TensorId tensor);
// Whether the op, one of the region, makes anything before the parts, and anything in them.
bool runs_before(const Graph& graph, const Region& region, OpId op);
bool runs_in_parts(const Graph& graph, const Region& region, OpId op);
// Whether the region makes the tensor part by part.
bool is_made_in_parts(const Graph& graph, const Region& region, TensorId tensor);

// What a part of an op of the region reads and makes: operands and results in its slices, with the
// graph's own tensors, and the arguments that follow.
struct PartOfOp {
  std::vector<Operand> operands, results;
  std::vector<Argument> arguments;
};
// TransformRefused where a part would have to copy what it reads.
PartOfOp part_of_op(const Graph& graph, const Region& region, OpId op, std::int64_t part,
                    const Labels& labels);

}  // namespace lowtide
