// Reads and writes graph files: our own format (docs/reference/formats.md), networkx node-link
// graphs (node_link.h) and HLO text (hlo_text.h). Their content tells them apart.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/io/graph_file.h"
#include "lowtide/io/json.h"

namespace lowtide::io {

// InputError for everything that formats.md refuses. It names the file, the place (a line for
// broken JSON, else a JSON pointer) and the op or tensor.
GraphFile read_graph(const std::string& path,  // "-": standard input; gzip or plain
                     const HloOptions& hlo = {});
GraphFile read_graph_text(std::string_view text, const std::string& file_name,
                          const HloOptions& hlo = {});
GraphFile read_graph_document(const JsonDocument& document, const std::string& file_name);

// The graph in our format: deterministic, one line for each tensor and op, defaults omitted.
// Reading it gives the same graph: names, order and all fields that are carried along.
std::string write_graph(const Graph& graph);

}  // namespace lowtide::io
