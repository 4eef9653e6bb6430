// A graph as input text for Graphviz.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"

namespace lowtide::report {

// Ops are boxes (name, kind, time, workspace), tensors the edges from their producer to each reader
// (name, size); tensors that no op produces, and graph outputs, are ellipses of their own. Dashed
// edges are `after`, red ones change their tensor in place.
std::string write_dot(const Graph& graph);
// The same with a frame around each half of each block but the root.
std::string write_dot(const Graph& graph, const Partition& partition);

}  // namespace lowtide::report
