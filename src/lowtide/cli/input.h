// Reads the files of the commands.
#pragma once

#include <string>
#include <vector>

#include "lowtide/device/cost_table.h"
#include "lowtide/graph/graph.h"
#include "lowtide/io/plan_json.h"

namespace CLI {
class App;
}

namespace lowtide::cli {

// The file of a graph, and the choices for HLO text.
struct GraphArgument {
  std::string path, price_on;
  bool outputs_from_start = false;
};
// Adds the argument and its flags. `argument` must outlive the parsing.
void add_graph_argument(CLI::App& command, GraphArgument& argument,
                        const std::string& description = "Graph file",
                        const std::string& name = "graph");

// Warnings go to standard error.
Graph load_graph(const GraphArgument& argument);
// The same; a graph without a name gets that of its file.
Graph load_named_graph(const GraphArgument& argument);
PlanFile load_plan(const std::string& path);
// Empty for an empty path. TransformRefused if the file says that the transforms are for another
// graph.
std::vector<Transform> load_transforms(const std::string& path, const Graph& graph);
CostTable load_costs(const std::string& path);

}  // namespace lowtide::cli
