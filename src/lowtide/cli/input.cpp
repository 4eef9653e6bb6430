#include "lowtide/cli/input.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/hash.h"
#include "lowtide/io/costs_json.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/plan/problem.h"
#include "lowtide/transforms/transformed_graph.h"

namespace lowtide::cli {

namespace {
void warn(const std::string& path, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    fmt::print(stderr, "lowtide: {}: warning: {}\n", path, warning);
}
}  // namespace

Graph load_graph(const std::string& path) {
  io::GraphFile file = io::read_graph(path);
  warn(path, file.warnings);
  return std::move(file.graph);
}

Graph load_named_graph(const std::string& path) {
  Graph graph = load_graph(path);
  if (!graph.name().empty() || path == "-") return graph;
  return std::move(graph).named(std::filesystem::path(path).filename().string());
}

CostTable load_costs(const std::string& path) {
  io::CostFile file = io::read_costs(path);
  warn(path, file.warnings);
  return std::move(file.table);
}

PlanFile load_plan(const std::string& path) {
  PlanFile file = io::read_plan(path);
  warn(path, file.warnings);
  return file;
}

std::vector<Transform> load_transforms(const std::string& path, const Graph& graph) {
  if (path.empty()) return {};
  std::vector<std::string> warnings;
  io::TransformsFile file = io::read_transforms(path, warnings);
  warn(path, warnings);
  const auto demand = [&](const std::string& what, const std::string& theirs,
                          const std::string& ours) {
    if (!theirs.empty() && theirs != ours)
      throw TransformRefused(path, "the transforms are for another graph: its " + what + " is " +
                                       theirs + ", this graph's " + ours);
  };
  demand("hash", file.graph_hash, graph_hash(graph));
  demand("transform_hash", file.transform_hash, transform_hash(graph));
  return std::move(file.transforms);
}

}  // namespace lowtide::cli
