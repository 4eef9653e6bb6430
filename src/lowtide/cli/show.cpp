// `lowtide show`: look at a graph, or at what a plan makes of it.
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/report_html.h"
#include "lowtide/report/report_text.h"
#include "lowtide/sim/check_plan.h"

namespace lowtide::cli {

namespace {

struct ShowArguments {
  std::string graph, plan, html;
};

int run(const ShowArguments& given) {
  require_writable(given.html);
  const Graph graph = load_named_graph(given.graph);
  std::optional<PlanFile> file;
  int status = kPlanFound;
  if (!given.plan.empty()) {
    file = load_plan(given.plan);
    const PlanVerdict verdict = check_plan(graph, *file);
    if (verdict.kind != PlanVerdict::Kind::holds) {
      fmt::print(stderr, "lowtide: {}: {}\n", given.plan, verdict.reason);
      status = kNotVerified;
      // Steps for another graph mean nothing in this one.
      if (verdict.kind == PlanVerdict::Kind::another_graph) return status;
    }
  }
  const bool has_steps = file && !file->plan.steps.empty();
  report::Report report = report::make_report(graph, has_steps ? &file->plan : nullptr,
                                              file ? file->budget : std::nullopt);
  if (file && has_steps) report.bound = file->claims.bound;
  if (file && has_steps && file->found_by) report.parts = file->found_by->parts;
  fmt::print("{}", report::text_report(report, output_style()));
  if (!given.html.empty()) {
    io::write_text_file(given.html, report::html_report(graph, report));
    fmt::print("\nwritten    {}\n", given.html);
  }
  return status;
}

}  // namespace

void add_show(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("show", "Draw memory over the steps of a plan, and list what takes it");
  const auto given = std::make_shared<ShowArguments>();
  command->add_option("graph", given->graph, "Graph file")->required();
  command->add_option("plan", given->plan, "Plan file (default: the given order, unplanned)");
  command->add_option("--html", given->html, "Write a self-contained page with zoom");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
