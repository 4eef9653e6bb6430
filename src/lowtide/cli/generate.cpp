// `lowtide generate`: graphs of any size to try things on.
#include "lowtide/graph/generate.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/units_text.h"

namespace lowtide::cli {

void add_generate(CLI::App& app, int& status) {
  struct Arguments {
    std::string kind, output = "-";
    std::int64_t ops = 1000;
    std::uint64_t seed = 0;
    LayeredSettings layered;
  };
  constexpr std::int64_t kMostOps = 10'000'000;
  CLI::App* command = app.add_subcommand("generate", "Generate a graph of any size");
  const auto given = std::make_shared<Arguments>();
  std::vector<std::string> kinds;
  for (std::string_view kind : generator_kinds()) kinds.emplace_back(kind);
  command->add_option("kind", given->kind, "Kind of network")
      ->required()
      ->check(CLI::IsMember(kinds));
  command->add_option("--ops", given->ops, "Approximate number of ops")
      ->check(CLI::Range(std::int64_t{1}, kMostOps))
      ->capture_default_str();
  command->add_option("--seed", given->seed, "Seed of the random parts of the graph")
      ->capture_default_str();
  CLI::Option* width =
      command
          ->add_option("--width", given->layered.width, "Layered graphs only: width of the layers")
          ->check(CLI::Range(0.01, 0.99))
          ->capture_default_str();
  command->add_option("-o,--output", given->output, "Output file (.json or .json.gz)")
      ->capture_default_str();
  command->callback([given, width, &status] {
    const auto ops = static_cast<std::size_t>(given->ops);
    const bool layered = given->kind == "layered";
    if (width->count() > 0 && !layered) throw InputError("--width", "only layered graphs have one");
    require_writable(given->output);
    const Graph graph = layered ? generate_layered(ops, given->seed, given->layered)
                                : generate(given->kind, ops, given->seed);
    io::write_text_file(given->output, io::write_graph(graph));
    const auto text = [](std::size_t count) {
      return report::count_text(static_cast<std::int64_t>(count));
    };
    // Networks are made of whole layers.
    const std::string asked =
        graph.op_count() == ops ? "" : fmt::format(" ({} were asked for)", text(ops));
    if (given->output != "-")
      fmt::print("{}: {} ops{}, {} tensors, {} links\n", given->output, text(graph.op_count()),
                 asked, text(graph.tensor_count()), text(graph.link_count()));
    else if (!asked.empty())
      fmt::print(stderr, "lowtide: {} ops{}\n", text(graph.op_count()), asked);
    status = 0;
  });
}

}  // namespace lowtide::cli
