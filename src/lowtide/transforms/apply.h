// The graph that a list of transforms makes: an ordinary one, which all that plans, prices, bounds
// and draws graphs takes unchanged.
//
// Each transform is done on the graph that those before it made, and names ops and tensors by the
// file's indices. What it makes gets new ones, after all that there are, in the order in which the
// made graph's own order makes it; none is used twice, and those of what is gone stay unused. In
// the made graph indices are dense again: its ops and tensors by their file's index, ascending.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/transforms/made.h"
#include "lowtide/transforms/transform.h"

namespace lowtide {

// TransformRefused for what is not legal; InputError, with the same place, for what check_complete
// refuses and for a price that this graph needs and the transform lacks.
Transformed apply_transforms(const Graph& graph, std::span<const Transform> transforms);
// The same, but the graph is made anew after each: what the other is held against.
Transformed apply_one_by_one(const Graph& graph, std::span<const Transform> transforms);

// A list of transforms and what it makes of the graph, so that a longer list need not begin anew.
struct Applied {
  std::vector<Transform> transforms;
  Transformed now;
};
// What `more` behind those makes: the same as all of them in one list, errors too.
Transformed apply_further(const Graph& graph, const Applied& before,
                          std::span<const Transform> more);
// The given ones, and of more those that are not refused behind what stands before them; their
// prices are told by their places, whatever the indices in them. Each that is refused too late to
// go on without it costs all of `more` once again: as soon as `stops` says so before that, the
// given ones alone.
Applied apply_those_that_hold(const Graph& graph, const Applied& given,
                              std::vector<Substitute> more,
                              const std::function<bool()>& stops = {});

}  // namespace lowtide
