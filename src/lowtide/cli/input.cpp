#include "lowtide/cli/input.h"

#include <cstdio>
#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/hash.h"
#include "lowtide/io/costs_json.h"
#include "lowtide/io/device_json.h"
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

void add_graph_argument(CLI::App& command, GraphArgument& argument, const std::string& description,
                        const std::string& name) {
  command.add_option(name, argument.path, description)->required();
  command.add_flag("--outputs-from-start", argument.outputs_from_start,
                   "Of HLO text: outputs take their bytes from the start, as in XLA's totals");
  command.add_option("--price-on", argument.price_on,
                     "Of HLO text: the device whose roofline prices the ops, a name ('lowtide "
                     "devices') or a file (default: a100)");
}

Graph load_graph(const GraphArgument& argument) {
  io::HloOptions hlo;
  hlo.outputs_from_start = argument.outputs_from_start;
  if (!argument.price_on.empty()) hlo.device = io::device_of(argument.price_on);
  io::GraphFile file = io::read_graph(argument.path, hlo);
  warn(argument.path, file.warnings);
  return std::move(file.graph);
}

Graph load_named_graph(const GraphArgument& argument) {
  Graph graph = load_graph(argument);
  if (!graph.name().empty() || argument.path == "-") return graph;
  return std::move(graph).named(std::filesystem::path(argument.path).filename().string());
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
