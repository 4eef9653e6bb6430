// Applies a list of transforms. The result is an ordinary graph: planning, pricing, bounding and
// drawing need no special case for it.
//
// Each transform is applied to the graph that the ones before it made, and names ops and tensors by
// file indices. New ops and tensors get indices after all existing ones, in the given order of the
// transformed graph. Indices are never reused; those of removed ops and tensors stay unused. The
// transformed graph itself has dense indices, in ascending order of the file indices.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/transforms/transform.h"
#include "lowtide/transforms/transformed_graph.h"

namespace lowtide {

// Throws TransformRefused for an illegal transform. Throws InputError, with the same place, for the
// errors of check_complete, and for a missing price.
TransformedGraph apply_transforms(const Graph& graph, std::span<const Transform> transforms);
// The same, but builds a graph after each transform. The reference for tests of the function above.
TransformedGraph apply_one_by_one(const Graph& graph, std::span<const Transform> transforms);

// A list of transforms with the transformed graph, so that a longer list can continue from it.
struct Applied {
  std::vector<Transform> transforms;
  TransformedGraph now;
};
// Applies `more` after those: the same result, and the same errors, as for one concatenated list.
TransformedGraph apply_further(const Graph& graph, const Applied& before,
                               std::span<const Transform> more);
// Applies the given transforms, and those of `more` that are legal after them. Prices in `more` are
// assigned by position; their indices are ignored. If a transform is refused after it has begun to
// change the graph, all of `more` is applied again without it. If `stops` returns true before that,
// the result is that of the given transforms alone.
Applied apply_those_that_hold(const Graph& graph, const Applied& given,
                              std::vector<Substitute> more,
                              const std::function<bool()>& stops = {});

}  // namespace lowtide
