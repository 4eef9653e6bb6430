// The hash of a graph as a problem: two graphs with the same hash have the same plans.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"

namespace lowtide {

// "sha256:..." over the fields that matter for planning, without names; docs/reference/formats.md
// has the layout.
std::string graph_hash(const Graph& graph);

// The same, plus the fields that transforms read: kinds, arguments, operands, shapes, number types.
std::string transform_hash(const Graph& graph);

}  // namespace lowtide
