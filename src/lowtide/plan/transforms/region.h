// A split as its graph sees it: which ops, how each is cut, what leaves the region. Private to the
// folder. All ids are those of the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/plan/dimensions/follow.h"
#include "lowtide/plan/transforms/draft.h"

namespace lowtide {

struct Region {
  std::vector<OpId> ops;  // in the given order
  std::vector<std::uint8_t> inside;
  std::vector<std::uint8_t> above;  // outside, and before some op of the region
  std::int64_t parts = 0;
  dimensions::Reach reach;
  // Split or partial, and needed outside; in the order of their making. What is the same in every
  // part needs no join.
  std::vector<TensorId> joined;

  const dimensions::Carry& carry(OpId op) const { return *reach.carries[op.index()]; }
  // Of an axis of that extent: equal parts, but for the last, which may be shorter.
  dimensions::Slices slices(std::int64_t extent, std::int64_t part) const;
};

// TransformRefused if the split is not legal: an op that is gone, has no axis, mutates or is a
// barrier; a region that is not convex; an axis that does not go into so many parts of two or more;
// bits that change although the split says that none does.
Region region_of(const Draft& draft, const Transformed& now, const Split& split);

// Whether the tensor is made by the region, once for all parts.
bool is_made_before(const Graph& graph, const Region& region, TensorId tensor);
// Of a tensor that the region makes.
bool is_needed_outside(const Graph& graph, const Region& region, TensorId tensor);
// Whether the op, one of the region, makes anything before the parts, and anything in them.
bool runs_before(const Graph& graph, const Region& region, OpId op);
bool runs_in_parts(const Graph& graph, const Region& region, OpId op);

}  // namespace lowtide
