// Applies a list of transforms. The transformed graph is an ordinary graph: everything that plans,
// prices, bounds and draws graphs takes it unchanged.
//
// Each transform is applied to the graph that the transforms before it made, and names ops and
// tensors by the file's indices. New ops and tensors get new file indices, after all existing ones,
// in the given order of the transformed graph. No file index is used twice; those of removed ops
// and tensors stay unused. In the transformed graph itself indices are dense: its ops and tensors
// stand by their file's index, ascending.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/transforms/transform.h"
#include "lowtide/transforms/transformed_graph.h"

namespace lowtide {

// TransformRefused for what is not legal; InputError, with the same place, for what check_complete
// refuses and for a price that this graph needs and the transform lacks.
TransformedGraph apply_transforms(const Graph& graph, std::span<const Transform> transforms);
// The same, but a graph is built after each transform: what tests hold the other against.
TransformedGraph apply_one_by_one(const Graph& graph, std::span<const Transform> transforms);

// A list of transforms and the graph that it makes, from which a longer list goes on.
struct Applied {
  std::vector<Transform> transforms;
  TransformedGraph now;
};
// Applies `more` after those of `before`: the same graph, and the same errors, as all of them in
// one list.
TransformedGraph apply_further(const Graph& graph, const Applied& before,
                               std::span<const Transform> more);
// The given ones, and of more those that are not refused behind what stands before them; their
// prices are told by their places, whatever the indices in them. Each that is refused too late to
// go on without it costs all of `more` once again: as soon as `stops` says so before that, the
// given ones alone.
Applied apply_those_that_hold(const Graph& graph, const Applied& given,
                              std::vector<Substitute> more,
                              const std::function<bool()>& stops = {});

}  // namespace lowtide
