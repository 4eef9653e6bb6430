// `lowtide regions`: which regions of a graph could be split, and what each would save and cost.
#include <algorithm>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/cli/commands.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/io/device_json.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/transforms/apply.h"
#include "lowtide/report/graph_text.h"
#include "lowtide/report/units_text.h"
#include "lowtide/rewrite/survey.h"

namespace lowtide::cli {

namespace {

using Json = nlohmann::ordered_json;

struct RegionsArguments {
  std::string graph, device = "a100";
  std::size_t most = 20;
  bool hoist = true, json = false;
};

std::string axis_text(const Graph& graph, const rewrite::Surveyed& one) {
  const auto& seed = one.region.axes.front();
  const std::string& name = graph.tensor(seed.tensor).name;
  return fmt::format(
      "{}:{}{}", name.empty() ? std::to_string(seed.tensor.index()) : name, seed.dim,
      one.region.axes.size() > 1 ? fmt::format(" and {} more", one.region.axes.size() - 1) : "");
}

std::string json_text(const Transformed& now, bool hoisted, Ticks base,
                      const rewrite::Survey& survey) {
  Json json = {{"graph", now.graph.name()},
               {"hoisted", hoisted},
               {"own_peak", survey.peak.count()},
               {"regions", Json::array()}};
  for (const rewrite::Surveyed& one : survey.found) {
    Json axes = Json::array(), ops = Json::array();
    for (const auto& seed : one.region.axes)
      axes.push_back({{"tensor", now.tensor_index[seed.tensor].index()}, {"dim", seed.dim}});
    for (const OpId op : one.region.ops) ops.push_back(now.op_index[op].index());
    json["regions"].push_back({{"what", one.region.what},
                               {"parts", one.parts},
                               {"own_peak", one.peak.count()},
                               {"saved", (survey.peak - one.peak).count()},
                               {"overhead_percent", overhead_percent(one.time, base)},
                               {"axes", axes},
                               {"ops", ops}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run(const RegionsArguments& given) {
  const Graph graph = load_named_graph(given.graph);
  const Device device = io::device_of(given.device);
  const rewrite::Hoisted base = given.hoist ? rewrite::hoisted(graph, device)
                                            : rewrite::Hoisted{{}, apply_transforms(graph, {})};
  const Transformed& now = base.now;
  const bool hoisted = !base.transforms.empty();
  const rewrite::Survey survey = rewrite::survey(now.graph, device);
  if (given.json) {
    fmt::print("{}", json_text(now, hoisted, graph.total_time(), survey));
    return 0;
  }
  const auto style = output_style();
  fmt::print("{:<10} {}\n", "graph", report::graph_text(graph, style.width - 11, style.unicode));
  fmt::print("{:<10} {}{}\n", "peak", report::exact_bytes_text(survey.peak),
             hoisted ? ", with the backward hoisted" : "");
  if (survey.found.empty()) {
    fmt::print("{:<10} no region lowers it; 'lowtide dimensions' says what stops an axis\n",
               "regions");
    return 0;
  }
  fmt::print("\n{:<12} {:>6} {:>6} {:>11} {:>7} {:>10}  {}\n", "region", "ops", "parts", "peak",
             "of own", "time", "along");
  const std::size_t count = std::min(given.most, survey.found.size());
  for (std::size_t i = 0; i < count; ++i) {
    const rewrite::Surveyed& one = survey.found[i];
    const double share = 100 * static_cast<double>(one.peak.count()) /
                         static_cast<double>(std::max<std::int64_t>(1, survey.peak.count()));
    fmt::print("{:<12} {:>6} {:>6} {:>11} {:>5.1f} % {:>+8.2f} %  {}\n", one.region.what,
               one.region.ops.size(), one.parts, report::bytes_text(one.peak), share,
               overhead_percent(one.time, graph.total_time()), axis_text(now.graph, one));
  }
  if (count < survey.found.size())
    fmt::print("\n{} more; --most {} shows all\n", survey.found.size() - count,
               survey.found.size());
  fmt::print(
      "\nPeaks and times are estimates, each split alone; "
      "'lowtide plan --techniques all' decides.\n");
  return 0;
}

}  // namespace

void add_regions(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "regions", "List regions that could be split, with what each would save and cost");
  const auto given = std::make_shared<RegionsArguments>();
  command->add_option("graph", given->graph, "Graph file")->required();
  command
      ->add_option("--device", given->device,
                   "On which device parts are priced: a name ('lowtide devices') or a file")
      ->capture_default_str();
  command->add_option("--most", given->most, "How many to print")->capture_default_str();
  command->add_flag("!--no-hoist", given->hoist,
                    "Look at the graph as it is, without hoisting its backward");
  command->add_flag("--json", given->json, "Print one JSON object");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
