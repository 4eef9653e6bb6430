// `lowtide apply`: what a plan's transforms make, as files that need none.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/plan_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/sim/check_plan.h"

namespace lowtide::cli {

namespace {

struct ApplyArguments {
  GraphArgument graph;
  std::string plan, output, plan_output;
};

int run(const ApplyArguments& given) {
  require_writable(given.output);
  require_writable(given.plan_output);
  const Graph graph = load_graph(given.graph);
  const PlanFile file = load_plan(given.plan);
  const PlanVerdict verdict = check_plan(graph, file);
  if (verdict.kind != PlanVerdict::Kind::holds) {
    fmt::print(stderr, "lowtide: {}: {}\n", given.plan, verdict.reason);
    return kNotVerified;
  }
  const AppliedPlan applied = apply_plan(graph, file);
  if (!given.output.empty()) io::write_text_file(given.output, io::write_graph(applied.graph));
  if (!given.plan_output.empty())
    io::write_text_file(given.plan_output, io::write_plan(applied.file));
  return kPlanFound;
}

}  // namespace

void add_apply(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "apply", "Apply a plan's transforms: write the transformed graph, and the plan for it");
  const auto given = std::make_shared<ApplyArguments>();
  add_graph_argument(*command, given->graph);
  command->add_option("plan", given->plan, "Plan file")->required();
  command->add_option("-o,--output", given->output, "Write the graph here (.json or .json.gz)")
      ->required();
  command->add_option("--plan", given->plan_output, "Write the plan here (.json or .json.gz)");
  command->footer("Exit status: 0 done, 2 bad input, 3 the plan is not verified.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
