// `lowtide verify`: re-check a plan file against its graph.
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/machine_flags.h"
#include "lowtide/layout/reserved.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/transforms/together.h"

namespace lowtide::cli {

namespace {

struct VerifyArguments {
  GraphArgument graph;
  std::string plan;
  std::optional<std::string> techniques;
  bool json = false;
};

using Json = nlohmann::ordered_json;

void print_json(const Graph& graph, const PlanFile& file, const PlanVerdict& verdict,
                bool has_plan) {
  const bool holds = verdict.kind == PlanVerdict::Kind::holds;
  Json json = {{"ok", holds},
               {"plan", has_plan},
               {"reason", holds ? Json() : Json(verdict.reason)},
               {"step", verdict.step ? Json(*verdict.step) : Json()}};
  json["transforms"] = Json::array();
  for (const auto some : together(file.plan.transforms))
    json["transforms"].push_back(describe(some));
  const bool priced = verdict.cost && has_plan;
  json["peak"] = priced ? Json(verdict.cost->peak.count()) : Json();
  json["duration"] = priced ? Json(verdict.cost->duration.count()) : Json();
  json["reserved"] = holds && file.claims.reserved ? Json(file.claims.reserved->count()) : Json();
  json["arena"] = holds && file.claims.arena ? Json(file.claims.arena->count()) : Json();
  const auto& full = file.claims.duration_full_link;
  json["duration_full_link"] = holds && full ? Json(full->count()) : Json();
  json["host_peak"] = priced ? Json(verdict.cost->host_peak.count()) : Json();
  json["overhead_percent"] =
      holds && priced ? Json(overhead_percent(verdict.cost->duration, own_duration(graph)))
                      : Json();
  fmt::print("{}\n", json.dump());
}

void print_text(const Graph& graph, const PlanFile& file, const PlanVerdict& verdict,
                bool has_plan) {
  if (verdict.kind != PlanVerdict::Kind::holds) {
    fmt::print("not verified: {}\n", verdict.reason);
    return;
  }
  if (!has_plan) {
    fmt::print("the file has no plan; its status is: {}\n",
               to_string(file.claims.status.value_or(Status::unknown)));
    return;
  }
  fmt::print("verified: every rule is kept and every figure is right\n");
  for (const auto some : together(file.plan.transforms))
    fmt::print("transform  {}\n", describe(some));
  fmt::print("peak       {}\n", report::exact_bytes_text(verdict.cost->peak));
  if (file.claims.arena)
    fmt::print("arena      {}\n", report::exact_bytes_text(*file.claims.arena));
  if (file.claims.reserved)
    fmt::print("reserved   {}\n", report::exact_bytes_text(*file.claims.reserved));
  if (file.budget) fmt::print("budget     {}\n", report::exact_bytes_text(*file.budget));
  fmt::print("duration   {}\n", report::ticks_text(verdict.cost->duration, graph.tick()));
  const Ticks base = own_duration(graph);
  fmt::print("overhead   {}\n",
             report::percent_text(overhead_percent(verdict.cost->duration, base)));
  if (const auto& full = file.claims.duration_full_link)
    fmt::print("full link  {}, overhead {}\n", report::ticks_text(*full, graph.tick()),
               report::percent_text(overhead_percent(*full, base)));
  if (verdict.cost->host_peak.count() > 0)
    fmt::print("host       {}\n", report::bytes_text(verdict.cost->host_peak));
}

int run(const VerifyArguments& given) {
  const Graph graph = load_graph(given.graph);
  PlanFile file = load_plan(given.plan);
  // To allow what the plan does not use is no mistake.
  if (given.techniques) file.techniques = asked_techniques(*given.techniques, true);
  PlanVerdict verdict = check_plan(graph, file);
  if (verdict.kind == PlanVerdict::Kind::holds)
    if (auto fault = layout::reserved_fault(graph, file)) {
      verdict.kind = PlanVerdict::Kind::broken;
      verdict.reason = std::move(*fault);
    }
  // A file that says there is no plan is not priced; the plan of a graph without ops has no steps.
  const bool has_plan = !file.plan.steps.empty() || verdict.cost.has_value();
  if (given.json)
    print_json(graph, file, verdict, has_plan);
  else
    print_text(graph, file, verdict, has_plan);
  if (verdict.kind != PlanVerdict::Kind::holds) return kNotVerified;
  return has_plan ? kPlanFound : kNoPlan;
}

}  // namespace

void add_verify(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check a plan file against its graph: every rule and every figure");
  const auto given = std::make_shared<VerifyArguments>();
  add_graph_argument(*command, given->graph);
  command->add_option("plan", given->plan, "Plan file")->required();
  command->add_option("--techniques", given->techniques,
                      "Check against these techniques instead of the file's");
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->footer("Exit status: 0 verified, 1 the file has no plan, 2 bad input, 3 not verified.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
