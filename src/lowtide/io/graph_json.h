// Graph files in and out: our own format (docs/reference/formats.md), and networkx node-link graphs
// (node_link.h), told apart by their content.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/io/json.h"

namespace lowtide::io {

struct GraphFile {
  Graph graph;
  std::vector<std::string> warnings;  // whole sentences, without the file's name
};

// InputError with the file's name, the place (a line where the JSON is broken, a JSON pointer where
// its meaning is) and the op or tensor, for everything that formats.md refuses.
GraphFile read_graph(const std::string& path);  // "-": standard input; gzip or plain
GraphFile read_graph_text(std::string_view text, const std::string& file_name);
GraphFile read_graph_document(const JsonDocument& document, const std::string& file_name);

// The graph in our format: deterministic, one line for each tensor and op, defaults left out.
// Reading it gives the same graph: names, order and everything that is carried along.
std::string write_graph(const Graph& graph);

}  // namespace lowtide::io
