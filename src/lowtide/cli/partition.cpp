// `lowtide partition`: a graph as a tree of blocks, in figures and as a picture.
#include <chrono>
#include <memory>
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
#include "lowtide/io/text_file.h"
#include "lowtide/report/dot.h"
#include "lowtide/report/partition_html.h"
#include "lowtide/report/partition_summary.h"
#include "lowtide/report/partition_text.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"

namespace lowtide::cli {

namespace {

using Json = nlohmann::ordered_json;
using solve::partition::Partitioner;

struct PartitionArguments {
  GraphArgument graph;
  std::string with = "h_partition", html, dot;
  std::vector<std::string> options;
  std::int64_t most = 12;
  bool json = false;
};

solve::Options options_of(const Partitioner& partitioner, const std::vector<std::string>& given) {
  solve::Options options(partitioner.options());
  for (const std::string& option : given) {
    const auto sign = option.find('=');
    if (sign == std::string::npos)
      throw InputError("--option " + option,
                       "write NAME=VALUE; 'lowtide partition --help' lists them");
    options.set(option.substr(0, sign), option.substr(sign + 1));
  }
  return options;
}

Json indices(const std::vector<TensorId>& tensors) {
  Json list = Json::array();
  for (const TensorId tensor : tensors) list.push_back(tensor.index());
  return list;
}

Json half_json(const Half& half) {
  Json ops = Json::array(), blocks = Json::array();
  for (const BlockPart& part : half.parts)
    part.op.valid() ? ops.push_back(part.op.index()) : blocks.push_back(part.block.index());
  return {{"ops", ops},
          {"blocks", blocks},
          {"takes", indices(half.takes)},
          {"gives", indices(half.gives)}};
}

void print_json(const Graph& graph, const Partition& partition,
                const report::PartitionSummary& summary, const Partitioner& partitioner,
                double seconds) {
  Json blocks = Json::array();
  for (const BlockId id : partition.blocks.ids()) {
    const Block& block = partition.blocks[id];
    const bool is_root = id == Partition::root();
    blocks.push_back({{"number", id.index()},
                      {"name", block.name},
                      {"parent", is_root ? Json() : Json(block.parent.index())},
                      {"level", summary.level[id] + 1},
                      {"alike", summary.alike[id].index()},
                      {"children", summary.children[id]},
                      {"forward", half_json(block.forward)},
                      {"backward", half_json(block.backward)},
                      {"saves", indices(block.saves)},
                      {"saved_bytes", block.saved_bytes.count()},
                      {"interface_bytes", interface_bytes(graph, block).count()}});
  }
  const Json json = {{"graph", graph.name()},
                     {"partitioner", partitioner.name()},
                     {"seconds", seconds},
                     {"levels", summary.levels.size()},
                     {"count", partition.blocks.size()},
                     {"unique", summary.unique},
                     {"largest", summary.largest},
                     {"top", summary.top},
                     {"interface_bytes", summary.interface.count()},
                     {"blocks", blocks}};
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

int run(const PartitionArguments& given) {
  const auto table = solve::partition::make_partitioners();
  const Partitioner& partitioner = *table.find(given.with);
  const solve::Options options = options_of(partitioner, given.options);
  const int to_output =
      (given.json ? 1 : 0) + (given.html == "-" ? 1 : 0) + (given.dot == "-" ? 1 : 0);
  if (to_output > 1)
    throw InputError("-", "standard output takes one of --json, --html and --dot; name a file");
  require_writable(given.html);
  require_writable(given.dot);
  const Graph graph = load_named_graph(given.graph);
  const auto begin = std::chrono::steady_clock::now();
  const Partition partition = *partitioner.partition(graph, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const report::PartitionSummary summary = report::summarise(graph, partition);
  const std::string how = fmt::format("{} in {:.2f} s", partitioner.name(), took.count());
  if (!given.html.empty())
    io::write_text_file(given.html, report::html_partition(graph, partition, summary, how));
  if (!given.dot.empty()) io::write_text_file(given.dot, report::write_dot(graph, partition));
  if (given.html == "-" || given.dot == "-") return 0;
  if (given.json) {
    print_json(graph, partition, summary, partitioner, took.count());
    return 0;
  }
  fmt::print("{}", report::partition_text(graph, partition, summary, how,
                                          static_cast<std::size_t>(given.most), output_style()));
  for (const std::string& path : {given.html, given.dot})
    if (!path.empty()) fmt::print("\nwritten    {}", path);
  if (!given.html.empty() || !given.dot.empty()) fmt::print("\n");
  return 0;
}

std::string footer(const solve::partition::PartitionerTable& table) {
  std::string text = "Partitioners and their options:\n";
  for (const auto& one : table.all()) {
    text += fmt::format("  {:<12} {}\n", one->name(), one->summary());
    for (const solve::OptionSpec& option : one->options())
      text += fmt::format("  {:<12}   {}: {} ({:g} to {:g}, default {:g})\n", "", option.name,
                          option.usage, option.low, option.high, option.default_number);
  }
  return text;
}

}  // namespace

void add_partition(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("partition", "Partition a graph into a tree of blocks, and describe it");
  const auto given = std::make_shared<PartitionArguments>();
  std::vector<std::string> names;
  const auto table = solve::partition::make_partitioners();
  for (const auto& one : table.all()) names.emplace_back(one->name());
  add_graph_argument(*command, given->graph);
  command->add_option("--with", given->with, "Partitioner")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->add_option("--option", given->options,
                      "Option of the partitioner, NAME=VALUE; may be repeated");
  command->add_option("--most", given->most, "Most levels and kinds of blocks to print")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_option("--html", given->html, "Write a self-contained page that draws the blocks");
  command->add_option("--dot", given->dot, "Write the graph for Graphviz, blocks as clusters");
  command->add_flag("--json", given->json, "Print one JSON object, with all blocks");
  command->footer(footer(table));
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
