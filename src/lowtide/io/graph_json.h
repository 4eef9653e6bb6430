// Reads and writes graph files: our own format (docs/reference/formats.md), networkx node-link
// graphs (node_link.h) and HLO text (hlo_text.h). Their content tells them apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"
#include "lowtide/io/json.h"

namespace lowtide::io {

// Choices for HLO text, which has neither times nor says where outputs are before they are computed.
struct HloOptions {
  // Prices the instructions; absent: kHloDevice.
  std::optional<Device> device = std::nullopt;
  // Outputs take their bytes from the start to the end, as in XLA's totals.
  bool outputs_from_start = false;
};
inline constexpr std::string_view kHloDevice = "a100";

struct GraphFile {
  Graph graph;
  std::vector<std::string> warnings;  // whole sentences, without the file's name
};

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
