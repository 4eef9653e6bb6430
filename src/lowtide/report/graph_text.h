// A graph in a line.
#pragma once

#include <cstddef>
#include <string>

#include "lowtide/graph/graph.h"

namespace lowtide::report {

// "name (461 ops, 943 tensors)", shortened to `columns` columns.
std::string graph_text(const Graph& graph, std::size_t columns, bool unicode = true);

}  // namespace lowtide::report
