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
#include "lowtide/report/graph_text.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/regions_text.h"
#include "lowtide/report/units_text.h"
#include "lowtide/rewrite/fission_tree.h"
#include "lowtide/rewrite/priced_region.h"
#include "lowtide/rewrite/profile.h"
#include "lowtide/rewrite/substitutions.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/transforms/apply.h"
#include "lowtide/transforms/substitution.h"

namespace lowtide::cli {

namespace {

using Json = nlohmann::ordered_json;

struct RegionsArguments {
  GraphArgument graph;
  std::string device = "a100";
  std::optional<std::string> costs;
  std::int64_t most = 20, pick = 0;
  std::string output;
  bool hoist = true, json = false, tree = false;
  std::int64_t levels = 4;
};

std::string axis_text(const Graph& graph, const rewrite::Surveyed& one) {
  const auto& seed = one.region.axes.front();
  const std::string& name = graph.tensor(seed.tensor).name;
  return fmt::format(
      "{}:{}{}", name.empty() ? std::to_string(seed.tensor.index()) : name, seed.dim,
      one.region.axes.size() > 1 ? fmt::format(" and {} more", one.region.axes.size() - 1) : "");
}

Json substitutions_json(const TransformedGraph& now, const std::vector<rewrite::Proposed>& found) {
  Json list = Json::array();
  for (const rewrite::Proposed& one : found) {
    Json ops = Json::array();
    for (const OpId op : one.substitute.ops) ops.push_back(op.index());
    list.push_back({{"rule", one.substitute.rule},
                    {"exact", one.substitute.exact},
                    {"saved", one.saved.count()},
                    {"share_percent",
                     overhead_percent(now.graph.total_time() + one.saved, now.graph.total_time())},
                    {"ops", ops}});
  }
  return list;
}

// By rule, in the order of the table: how often, and what those take less that save time.
void print_substitutions(const Graph& graph, const std::vector<rewrite::Proposed>& found) {
  if (found.empty()) return;
  fmt::print("\nPatterns that a rule can replace\n");
  for (const Rule* rule : substitution_rules()) {
    std::size_t count = 0;
    Ticks saved;
    for (const rewrite::Proposed& one : found) {
      if (one.substitute.rule != rule->name) continue;
      ++count;
      saved = checked_add(saved, std::max(Ticks(0), one.saved));
    }
    if (count == 0) continue;
    const double share = overhead_percent(graph.total_time() + saved, graph.total_time());
    fmt::print("  {:<18} {:>5}  saves {}{}\n", rule->name, count, report::percent_text(share),
               rule->exact ? "" : ", may change bits");
  }
}

std::string json_text(const TransformedGraph& now, bool hoisted, Ticks base,
                      const rewrite::Survey& survey,
                      const std::vector<rewrite::Proposed>& substitutions) {
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
                               {"what", describe(now.graph, one.region)},
                               {"parts", one.parts},
                               {"own_peak", one.peak.count()},
                               {"saved", (survey.peak - one.peak).count()},
                               {"overhead_percent", overhead_percent(one.time, base)},
                               {"axes", axes},
                               {"ops", ops}});
  }
  json["substitutions"] = substitutions_json(now, substitutions);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// For each region only the numbers of parts that are not dominated in both figures.
std::vector<report::RegionRow> rows_of(const Graph& graph, const TransformedGraph& now,
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
    rows.push_back({number, describe(now.graph, one.region), axis_text(now.graph, one),
                    one.region.ops.size(), one.parts, one.peak, share,
                    overhead_percent(one.time, graph.total_time())});
  }
  return rows;
}

// The transforms that make the region that was picked, for `plan --transform`.
void write_picked(const RegionsArguments& given, const Graph& graph, Applied base,
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

// The F-Tree, children below their parents: each region in its fewest parts and
// in its most.
void print_tree(const RegionsArguments& given, const Graph& graph, const TransformedGraph& now,
                const Device& device, const CostTable* costs) {
  const rewrite::FissionTree tree = rewrite::fission_tree(now.graph, given.levels);
  const PartPricer pricer(now.graph, device, costs);
  const Bytes own = rewrite::profile_of(now.graph).peak();
  const auto figures = [&](const rewrite::FissionNode& node, std::int64_t parts) {
    const auto priced = rewrite::PricedRegion::make(now.graph, node.region, parts, pricer);
    if (!priced) return fmt::format("{} parts: not legal", parts);
    const rewrite::Profile made = priced->profile();
    return fmt::format("{} parts: peak {} ({:.1f} %), time {:+.2f} %", parts,
                       report::bytes_text(made.peak()),
                       100 * static_cast<double>(made.peak().count()) /
                           static_cast<double>(std::max<std::int64_t>(1, own.count())),
                       overhead_percent(made.time, graph.total_time()));
  };
  const auto print = [&](auto& self, std::size_t at, int depth) -> void {
    const rewrite::FissionNode& node = tree.nodes[at];
    fmt::print("{:{}}{} of {} ops, level {}{}\n", "", 2 + 2 * depth,
               describe(now.graph, node.region), node.region.ops.size(), node.level,
               node.ruler.valid() ? ", below " + now.graph.label(node.ruler) : "");
    fmt::print("{:{}}{}\n", "", 4 + 2 * depth, figures(node, node.numbers.front()));
    if (node.numbers.size() > 1)
      fmt::print("{:{}}{}\n", "", 4 + 2 * depth, figures(node, node.numbers.back()));
    for (const std::size_t child : node.children) self(self, child, depth + 1);
  };
  fmt::print("\nF-Tree of {} regions\n", tree.nodes.size());
  for (std::size_t at = 0; at < tree.nodes.size(); ++at)
    if (tree.nodes[at].parent == rewrite::FissionNode::kNone) print(print, at, 0);
}

int run(const RegionsArguments& given) {
  if ((given.pick > 0) == given.output.empty())
    throw InputError(given.output.empty() ? "--pick" : "-o",
                     "--pick N and -o FILE go together: which region is written, and where to");
  if (given.tree && (given.json || given.pick > 0))
    throw InputError("--tree", "it draws, and goes with neither --json nor --pick");
  if (given.json && given.output == "-")
    throw InputError("-o -", "with --json, standard output is taken; name a file");
  require_writable(given.output);
  const Graph graph = load_named_graph(given.graph);
  const Device device = io::device_of(given.device);
  const std::optional<CostTable> table =
      given.costs ? std::optional(load_costs(*given.costs)) : std::nullopt;
  const CostTable* costs = table ? &*table : nullptr;
  const Applied base = rewrite::hoisted(graph, device, costs, given.hoist);
  const TransformedGraph& now = base.now;
  if (given.tree) {
    const auto style = output_style();
    fmt::print("{:<10} {}\n", "graph", report::graph_text(graph, style.width - 11, style.unicode));
    if (!base.transforms.empty())
      fmt::print("{:<10} {}\n", "first", describe(base.transforms.front()));
    print_tree(given, graph, now, device, costs);
    return 0;
  }
  const rewrite::Survey survey = rewrite::survey(now.graph, device, costs);
  const auto substitutions = rewrite::substitutions(now, PartPricer(now.graph, device, costs));
  if (given.pick > 0) write_picked(given, graph, base, survey, device, costs);
  if (given.output == "-") return 0;
  if (given.json) {
    fmt::print("{}",
               json_text(now, !base.transforms.empty(), graph.total_time(), survey, substitutions));
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
    print_substitutions(now.graph, substitutions);
    return 0;
  }
  const auto rows = rows_of(graph, now, survey);
  const std::size_t count = std::min(static_cast<std::size_t>(given.most), rows.size());
  fmt::print("\nRegions that may run in parts\n{}",
             report::regions_text(std::span(rows).first(count), style));
  if (count < rows.size())
    fmt::print("  {} more; --most {} shows all\n", rows.size() - count, rows.size());
  print_substitutions(now.graph, substitutions);
  fmt::print("\n{}", report::wrap("Peaks and times are estimates, each of a split alone. 'lowtide "
                                  "plan --techniques all' tries them out, together.",
                                  style.width, style.unicode));
  return 0;
}

}  // namespace

void add_regions(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "regions", "List regions that a split could run in parts, with estimated savings and costs");
  const auto given = std::make_shared<RegionsArguments>();
  add_graph_argument(*command, given->graph);
  command
      ->add_option("--device", given->device,
                   "Device that prices parts of ops: a name ('lowtide devices') or a file")
      ->capture_default_str();
  command->add_option("--costs", given->costs,
                      "Measured costs (a file); they override the roofline");
  command->add_option("--most", given->most, "Most regions to print")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  command
      ->add_option("--pick", given->pick,
                   "Number of a region: write its transforms to -o, for 'plan --transform'")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  command->add_option("-o,--output", given->output, "Output file of --pick");
  command->add_flag("!--no-hoist", given->hoist, "Do not hoist the backward first");
  command->add_flag(
      "--tree", given->tree,
      "Print the F-Tree of MAGIS instead: each region below the one that contains it");
  command->add_option("--levels", given->levels, "Levels of the F-Tree")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{32}))
      ->capture_default_str();
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
