// `lowtide convert`: a graph from any format that is read into one that is written.
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/device/op_price.h"
#include "lowtide/io/device_json.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/dot.h"

namespace lowtide::cli {

namespace {

struct ConvertArguments {
  GraphArgument from;
  std::string to = "-", format, device, costs;
};

std::string format_of(const ConvertArguments& given) {
  if (!given.format.empty()) return given.format;
  for (const char* dot : {".dot", ".gv", ".dot.gz", ".gv.gz"})
    if (given.to.ends_with(dot)) return "dot";
  if (given.to == "-" || given.to.ends_with(".json") || given.to.ends_with(".json.gz"))
    return "lowtide";
  throw InputError("",
                   "its name does not say which format; end it in .json, .json.gz or .dot, or "
                   "give --format",
                   given.to);
}

Graph priced(Graph graph, const ConvertArguments& given) {
  try {
    const CostTable costs = given.costs.empty() ? CostTable() : load_costs(given.costs);
    return priced_on(std::move(graph), io::device_of(given.device), io::stated_operations, &costs);
  } catch (const InputError& error) {
    throw error.file().empty() ? error.in_file(given.from.path) : error;
  }
}

}  // namespace

void add_convert(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "convert", "Convert a graph to another format, or price its ops for another device");
  const auto given = std::make_shared<ConvertArguments>();
  add_graph_argument(*command, given->from, "Graph file (ours, networkx node-link or HLO text)",
                     "from");
  command->add_option("to", given->to, "Output file: .json, .json.gz, .dot; - is standard output")
      ->capture_default_str();
  command->add_option("--format", given->format, "Output format (default: by file name)")
      ->check(CLI::IsMember({"lowtide", "dot"}));
  command->add_option("--device", given->device,
                      "Replace the time of every op by a roofline estimate for this device: a name "
                      "('lowtide devices') or a file");
  command
      ->add_option("--costs", given->costs, "Measured costs (a file); they override the roofline")
      ->needs("--device");
  command->callback([given, &status] {
    const std::string format = format_of(*given);
    require_writable(given->to);
    Graph graph = load_graph(given->from);
    if (!given->device.empty()) graph = priced(std::move(graph), *given);
    io::write_text_file(given->to,
                        format == "dot" ? report::write_dot(graph) : io::write_graph(graph));
    status = 0;
  });
}

}  // namespace lowtide::cli
