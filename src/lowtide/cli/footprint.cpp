// `lowtide footprint`: what a plan reserves under PyTorch's caching allocator.
#include "lowtide/layout/footprint.h"

#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/footprint_flags.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/plan/budget.h"
#include "lowtide/report/footprint_text.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::cli {

namespace {

using Json = nlohmann::ordered_json;

struct FootprintArguments {
  GraphArgument graph;
  std::string plan, allocator, memory;
  int steps = layout::kFootprintSteps;
  bool json = false;
};

Json peaks_json(const layout::Peaks& peaks) {
  return {{"requested", peaks.requested.count()},
          {"allocated", peaks.allocated.count()},
          {"active", peaks.active.count()},
          {"reserved", peaks.reserved.count()},
          {"inactive_split", peaks.inactive_split.count()}};
}

Json footprint_json(const layout::DeviceFootprint& found) {
  const layout::Replay& replay = found.replay;
  Json json = {{"allocator", layout::to_string(found.terms.settings)},
               {"memory", found.terms.memory ? Json(found.terms.memory->count()) : Json()},
               {"live", found.live.count()},
               {"peaks", peaks_json(replay.peaks)},
               {"steps", Json::array()},
               {"retries", replay.counts.retries},
               {"out_of_memory", Json()},
               {"better", Json::array()}};
  for (const layout::Peaks& step : replay.steps) json["steps"].push_back(peaks_json(step));
  if (const auto& lost = replay.out_of_memory)
    json["out_of_memory"] = {{"requested", lost->requested.count()},
                             {"allocated", lost->allocated.count()},
                             {"reserved", lost->reserved.count()}};
  for (const layout::OtherSettings& other : found.better)
    json["better"].push_back({{"allocator", other.settings}, {"reserved", other.reserved.count()}});
  return json;
}

// Of the plan in the file, if it holds; without a file, of the unplanned step.
std::optional<layout::DeviceFootprint> measured(const FootprintArguments& given, const Graph& graph,
                                                const layout::FootprintTerms& terms) {
  if (given.plan.empty()) return layout::own_footprint(graph, terms);
  const PlanFile file = load_plan(given.plan);
  const PlanVerdict verdict = check_plan(graph, file);
  if (verdict.kind == PlanVerdict::Kind::holds && verdict.cost)
    return layout::footprint(graph, file.plan, terms);
  fmt::print(stderr, "lowtide: {}: {}\n", given.plan,
             verdict.kind == PlanVerdict::Kind::holds ? "the file has no plan" : verdict.reason);
  return {};
}

int run(const FootprintArguments& given) {
  layout::FootprintTerms terms;
  terms.settings = allocator_settings(given.allocator);
  terms.steps = given.steps;
  if (!given.memory.empty()) terms.memory = parse_size(given.memory, "--memory");
  const Graph graph = load_named_graph(given.graph);
  const std::optional<layout::DeviceFootprint> found = measured(given, graph, terms);
  if (!found) return kNotVerified;
  if (given.json)
    fmt::print("{}\n", footprint_json(*found).dump());
  else
    fmt::print("{}", report::footprint_text(*found, output_style()));
  return found->replay.out_of_memory ? kNoPlan : kPlanFound;
}

}  // namespace

void add_footprint(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "footprint", "What a plan reserves under PyTorch's caching allocator, and what would help");
  const auto given = std::make_shared<FootprintArguments>();
  add_graph_argument(*command, given->graph);
  command->add_option("plan", given->plan, "Plan file (default: the given order, unplanned)");
  command->add_option("--allocator", given->allocator,
                      "Its settings, as in PYTORCH_ALLOC_CONF: \"expandable_segments:True\"");
  command->add_option("--steps", given->steps, "Steps of training in a row")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--memory", given->memory,
                      "What the device has for it, such as 24GiB (default: without a limit)");
  command->add_flag("--json", given->json, "One JSON object");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
