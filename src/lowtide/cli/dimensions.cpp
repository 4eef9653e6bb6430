// `lowtide dimensions`: how far an axis reaches in a graph, and what stops it.
#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/ops/dimensions/follow.h"
#include "lowtide/report/reach_text.h"

namespace lowtide::cli {

namespace {

using Json = nlohmann::ordered_json;

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Suggestions for a seed: some inputs that are data.
std::string inputs_of(const Graph& graph) {
  constexpr std::size_t kMost = 6;
  std::string names;
  std::size_t count = 0;
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) {
    const Tensor& tensor = graph.tensor(id);
    const bool data = graph.is_input(id) && tensor.role != Role::parameter &&
                      tensor.role != Role::state && tensor.role != Role::constant;
    if (!data || tensor.name.empty() || ++count > kMost) continue;
    names += (names.empty() ? "; its inputs are " : ", ") + tensor.name;
  }
  return count > kMost ? names + ", ..." : names;
}

TensorId tensor_of(const Graph& graph, const std::string& word, std::string_view name) {
  const std::size_t count = graph.tensor_count();
  if (const auto index = integer(name)) {
    if (*index < 0 || static_cast<std::size_t>(*index) >= count)
      throw InputError("--axis " + word, "there is no tensor " + std::to_string(*index) +
                                             "; the graph has " + std::to_string(count));
    return TensorId(static_cast<std::size_t>(*index));
  }
  std::vector<TensorId> found;
  for (const TensorId id : AllIds<TensorId>(count))
    if (graph.tensor(id).name == name) found.push_back(id);
  if (found.empty())
    throw InputError("--axis " + word,
                     "no tensor is called \"" + std::string(name) + "\"" + inputs_of(graph));
  if (found.size() > 1)
    throw InputError("--axis " + word, std::to_string(found.size()) + " tensors are called \"" +
                                           std::string(name) + "\"; the first is number " +
                                           std::to_string(found.front().index()));
  return found.front();
}

dimensions::Seed seed_of(const Graph& graph, const std::string& word) {
  const std::size_t colon = word.rfind(':');
  const auto dim =
      colon == std::string::npos ? std::nullopt : integer(std::string_view(word).substr(colon + 1));
  if (!dim)
    throw InputError("--axis " + word,
                     "must be a tensor, by its name or number, and a dimension: input0:0");
  return {tensor_of(graph, word, std::string_view(word).substr(0, colon)), *dim};
}

Json share(const report::ReachedModule& module) {
  return {{"ops", module.ops},
          {"carried", module.carried},
          {"stopped", module.stopped},
          {"bytes", module.bytes.count()},
          {"carried_bytes", module.carried_bytes.count()}};
}

std::string json_text(const Graph& graph, const std::vector<dimensions::Seed>& seeds,
                      const dimensions::Reach& reach, const report::ReachSummary& summary) {
  Json json = {{"graph", graph.name()}, {"axes", Json::array()}};
  for (const dimensions::Seed& seed : seeds) {
    const Tensor& tensor = graph.tensor(seed.tensor);
    json["axes"].push_back({{"tensor", seed.tensor.index()},
                            {"name", tensor.name},
                            {"dim", seed.dim},
                            {"slices", tensor.shape[static_cast<std::size_t>(seed.dim)]}});
  }
  json.update(share(summary.all));
  json["modules"] = Json::array();
  for (const report::ReachedModule& module : summary.modules) {
    Json entry = {{"origin", module.origin}};
    entry.update(share(module));
    json["modules"].push_back(std::move(entry));
  }
  json["stops"] = Json::array();
  for (const report::StopsAlike& stop : summary.stops)
    for (const OpId op : stop.ops) {
      const dimensions::Stop& one = *reach.stops[op.index()];
      json["stops"].push_back({{"op", op.index()},
                               {"name", graph.op(op).name},
                               {"kind", stop.kind},
                               {"origin", graph.op(op).origin},
                               {"cause", dimensions::to_string(one.cause)},
                               {"tensor", one.tensor.valid() ? Json(one.tensor.index()) : Json()},
                               {"reason", one.reason}});
    }
  json["carries"] = Json::array();
  for (const OpId op : AllIds<OpId>(graph.op_count()))
    if (reach.carries[op.index()]) json["carries"].push_back(op.index());
  json["tensors"] = Json::array();
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) {
    const dimensions::TensorState& now = reach.tensors[id.index()];
    if (now.state == dimensions::State::whole) continue;
    Json entry = {{"tensor", id.index()}, {"state", dimensions::to_string(now.state)}};
    if (now.state == dimensions::State::split) {
      entry["slices"] = now.axis.extent;
      entry["stride"] = now.axis.stride;
    }
    json["tensors"].push_back(std::move(entry));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct DimensionsArguments {
  GraphArgument graph;
  std::vector<std::string> axes;
  bool json = false;
};

int run(const DimensionsArguments& given) {
  const Graph graph = load_named_graph(given.graph);
  std::vector<dimensions::Seed> seeds;
  std::vector<std::string> names;
  seeds.reserve(given.axes.size());
  for (const std::string& word : given.axes) seeds.push_back(seed_of(graph, word));
  const dimensions::Reach reach = dimensions::follow(graph, seeds);
  const report::ReachSummary summary = report::summarize(graph, reach);
  if (given.json) {
    fmt::print("{}", json_text(graph, seeds, reach, summary));
    return 0;
  }
  for (const dimensions::Seed& seed : seeds) {
    const Tensor& tensor = graph.tensor(seed.tensor);
    names.push_back(fmt::format("dimension {} of {}, {} slices", seed.dim, graph.label(seed.tensor),
                                tensor.shape[static_cast<std::size_t>(seed.dim)]));
  }
  fmt::print("{}", report::reach_text(graph, names, summary, output_style()));
  return 0;
}

}  // namespace

void add_dimensions(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "dimensions",
      "Show which ops can be split along a dimension of a tensor, and which ops stop it");
  const auto given = std::make_shared<DimensionsArguments>();
  add_graph_argument(*command, given->graph);
  command
      ->add_option("--axis", given->axes,
                   "TENSOR:DIM, a tensor's name or number and a dimension of its shape; repeat it "
                   "to follow several together")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
