// Reads the files of the commands.
#pragma once

#include <string>
#include <vector>

#include "lowtide/device/cost_table.h"
#include "lowtide/graph/graph.h"
#include "lowtide/io/plan_json.h"

namespace lowtide::cli {

// Warnings go to standard error.
Graph load_graph(const std::string& path);
// The same; a graph without a name gets that of its file.
Graph load_named_graph(const std::string& path);
PlanFile load_plan(const std::string& path);
// Empty for an empty path. TransformRefused if the file says that the transforms are for another
// graph.
std::vector<Transform> load_transforms(const std::string& path, const Graph& graph);
CostTable load_costs(const std::string& path);

}  // namespace lowtide::cli
