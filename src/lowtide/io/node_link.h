// Graphs as networkx writes them (node_link_data), read as ours: every node is an op with one
// output tensor of the same name, every link an op that reads a tensor. docs/reference/formats.md
// lists the keys. No tensor is a graph output, so what nobody reads is freed at once.
#pragma once

#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/io/json.h"

namespace lowtide::io {

// InputError with a JSON pointer into the document. Appends to `warnings`.
Graph read_node_link(JsonValue root, std::vector<std::string>& warnings);

}  // namespace lowtide::io
