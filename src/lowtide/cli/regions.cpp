// `lowtide regions`: which regions of a graph could be split, and what each would save and cost.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/io/device_json.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/transforms/apply.h"
#include "lowtide/report/graph_text.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/regions_text.h"
#include "lowtide/report/units_text.h"
#include "lowtide/rewrite/survey.h"

namespace lowtide::cli {

namespace {

using Json = nlohmann::ordered_json;

struct RegionsArguments {
  std::string graph, device = "a100";
  std::optional<std::string> costs;
  std::int64_t most = 20, pick = 0;
  std::string output;
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
  std::size_t number = 0;
  for (const rewrite::Surveyed& one : survey.found) {
    Json axes = Json::array(), ops = Json::array();
    for (const auto& seed : one.region.axes)
      axes.push_back({{"tensor", now.tensor_index[seed.tensor].index()}, {"dim", seed.dim}});
    for (const OpId op : one.region.ops) ops.push_back(now.op_index[op].index());
    json["regions"].push_back({{"number", ++number},
                               {"what", one.region.what},
                               {"parts", one.parts},
                               {"own_peak", one.peak.count()},
                               {"saved", (survey.peak - one.peak).count()},
                               {"overhead_percent", overhead_percent(one.time, base)},
                               {"axes", axes},
                               {"ops", ops}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Of a region in several numbers of parts only those of which none needs as little of both.
std::vector<report::RegionRow> rows_of(const Graph& graph, const Transformed& now,
                                       const rewrite::Survey& survey) {
  std::vector<report::RegionRow> rows;
  std::size_t number = 0;
  for (const rewrite::Surveyed& one : survey.found) {
    ++number;
    const bool beaten = std::ranges::any_of(survey.found, [&](const rewrite::Surveyed& other) {
      return other.region.ops == one.region.ops && other.peak <= one.peak &&
             other.time <= one.time && (other.peak < one.peak || other.time < one.time);
    });
    if (beaten) continue;
    const auto share = static_cast<double>(one.peak.count()) /
                       static_cast<double>(std::max<std::int64_t>(1, survey.peak.count()));
    rows.push_back({number, one.region.what, axis_text(now.graph, one), one.region.ops.size(),
                    one.parts, one.peak, share, overhead_percent(one.time, graph.total_time())});
  }
  return rows;
}

// The transforms that make the region that was picked, for `plan --transform`.
void write_picked(const RegionsArguments& given, const Graph& graph, rewrite::Hoisted base,
                  const rewrite::Survey& survey, const Device& device, const CostTable* costs) {
  const auto count = static_cast<std::int64_t>(survey.found.size());
  if (given.pick > count)
    throw InputError(fmt::format("--pick {}", given.pick),
                     count == 0 ? "there is no region to pick"
                                : fmt::format("there are {} regions, numbered from 1", count));
  const rewrite::Surveyed& one = survey.found[static_cast<std::size_t>(given.pick - 1)];
  base.transforms.emplace_back(rewrite::split_of(base.now, one, device, costs));
  io::write_text_file(given.output, io::write_transforms(base.transforms, graph));
}

int run(const RegionsArguments& given) {
  if ((given.pick > 0) == given.output.empty())
    throw InputError(given.output.empty() ? "--pick" : "-o",
                     "--pick N and -o FILE go together: which region is written, and where to");
  if (given.json && given.output == "-")
    throw InputError("-o -", "with --json, standard output is taken; name a file");
  require_writable(given.output);
  const Graph graph = load_named_graph(given.graph);
  const Device device = io::device_of(given.device);
  const std::optional<CostTable> table =
      given.costs ? std::optional(load_costs(*given.costs)) : std::nullopt;
  const CostTable* costs = table ? &*table : nullptr;
  const rewrite::Hoisted base = given.hoist ? rewrite::hoisted(graph, device, costs)
                                            : rewrite::Hoisted{{}, apply_transforms(graph, {})};
  const Transformed& now = base.now;
  const rewrite::Survey survey = rewrite::survey(now.graph, device, costs);
  if (given.pick > 0) write_picked(given, graph, base, survey, device, costs);
  if (given.output == "-") return 0;
  if (given.json) {
    fmt::print("{}", json_text(now, !base.transforms.empty(), graph.total_time(), survey));
    return 0;
  }
  const auto style = output_style();
  fmt::print("{:<10} {}\n", "graph", report::graph_text(graph, style.width - 11, style.unicode));
  if (!base.transforms.empty())
    fmt::print("{:<10} {}\n", "first", describe(base.transforms.front()));
  fmt::print("{:<10} {}\n", "peak", report::exact_bytes_text(survey.peak));
  if (survey.found.empty()) {
    fmt::print("{:<10} no region lowers it; 'lowtide dimensions' says what stops an axis\n",
               "regions");
    return 0;
  }
  const auto rows = rows_of(graph, now, survey);
  const std::size_t count = std::min(static_cast<std::size_t>(given.most), rows.size());
  fmt::print("\nRegions that may run in parts\n{}",
             report::regions_text(std::span(rows).first(count), style));
  if (count < rows.size())
    fmt::print("  {} more; --most {} shows all\n", rows.size() - count, rows.size());
  fmt::print("\n{}", report::wrap("Peaks and times are estimates, each of a split alone. 'lowtide "
                                  "plan --techniques all' tries them out, together.",
                                  style.width, style.unicode));
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
  command->add_option("--costs", given->costs, "Before that: a table of measured calls; a file");
  command->add_option("--most", given->most, "How many to print")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  command
      ->add_option("--pick", given->pick,
                   "The number of a region: write its transforms to -o, for 'plan --transform'")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  command->add_option("-o,--output", given->output, "Where to");
  command->add_flag("!--no-hoist", given->hoist,
                    "Look at the graph as it is, without hoisting its backward");
  command->add_flag("--json", given->json, "Print one JSON object");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
