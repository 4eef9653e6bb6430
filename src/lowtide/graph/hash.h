// The name of a graph as a problem: two graphs with the same hash have the same plans.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"

namespace lowtide {

// "sha256:..." over the planning fields, names left out; docs/reference/formats.md has the layout.
std::string graph_hash(const Graph& graph);

// The same over what transforms read besides: kinds, arguments, operands, shapes, number types.
std::string transform_hash(const Graph& graph);

}  // namespace lowtide
