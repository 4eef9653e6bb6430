// `lowtide show`: look at a graph, or at what a plan makes of it.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/footprint_flags.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/show_output.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/io/snapshot_pickle.h"
#include "lowtide/io/text_file.h"
#include "lowtide/layout/footprint.h"
#include "lowtide/layout/plan_snapshot.h"
#include "lowtide/report/report_html.h"
#include "lowtide/report/report_text.h"
#include "lowtide/report/trace.h"
#include "lowtide/sim/check_plan.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::cli {

namespace {

struct ShowArguments {
  GraphArgument graph;
  std::string plan, html, snapshot, trace;
  std::optional<std::string> allocator;
  bool steps = false, json = false;
};

// Viewers draw runs: a plan that breaks a rule is none, nor is a graph's own order where inputs are
// on the host.
void require_run(const report::Report& report, const std::string& option) {
  const Timeline& timeline = report.shown().timeline;
  if (timeline.violation)
    throw InputError(option, "draws what runs, which this does not: " + timeline.violation->reason);
}

void write_snapshot(const Graph& graph, const std::optional<PlanFile>& file,
                    const std::string& path) {
  const bool has_steps = file && !file->plan.steps.empty();
  PlanFile own;
  if (!has_steps) own.plan = own_plan(graph);
  io::write_text_file(path,
                      io::write_snapshot(layout::plan_snapshot(graph, has_steps ? *file : own)));
}

// The settings that are given, or those by which the file counts reserved bytes.
std::optional<layout::AllocatorSettings> allocator_of(const ShowArguments& given,
                                                      const std::optional<PlanFile>& file) {
  if (given.allocator) return allocator_settings(*given.allocator);
  if (!file || (file->footprint != Footprint::reserved && !file->claims.reserved)) return {};
  try {
    return layout::parse_allocator_settings(file->allocator);
  } catch (const InputError& error) {
    throw InputError(given.plan, "its \"allocator\" is refused: " + std::string(error.what()));
  }
}

// What of the plan counts where its budget does not limit live bytes.
std::optional<report::Counted> counted_of(const PlanFile& file) {
  const auto& claims = file.claims;
  if (file.footprint == Footprint::arena && claims.arena) return {{file.footprint, *claims.arena}};
  if (file.footprint == Footprint::reserved && claims.reserved)
    return {{file.footprint, *claims.reserved}};
  return {};
}

int run(const ShowArguments& given) {
  const report::TraceFormat format =
      given.trace.empty() ? report::TraceFormat::chrome : report::trace_format(given.trace);
  for (const std::string& path : {given.html, given.snapshot, given.trace}) require_writable(path);
  if (given.allocator) allocator_settings(*given.allocator);
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
      if (!given.snapshot.empty() || !given.trace.empty()) return status;
    }
  }
  const bool has_steps = file && !file->plan.steps.empty();
  report::Report report = report::make_report(graph, has_steps ? &file->plan : nullptr,
                                              file ? file->budget : std::nullopt);
  if (file && has_steps) report.bound = file->claims.bound;
  if (file && has_steps && file->found_by) report.parts = file->found_by->parts;
  if (file && has_steps) report.counted = counted_of(*file);
  const report::Run& shown = report.shown();
  if (const auto settings = allocator_of(given, file); settings && !shown.timeline.violation) {
    layout::FootprintTerms terms;
    terms.settings = *settings;
    report.device = layout::footprint(shown.graph(graph), shown.plan, terms);
  }
  if (!given.snapshot.empty()) require_run(report, "--snapshot");
  if (!given.trace.empty()) require_run(report, "--trace");
  if (given.json)
    fmt::print("{}", report_json(graph, report));
  else
    fmt::print("{}", given.steps ? steps_text(graph, report)
                                 : report::text_report(report, output_style()));
  if (!given.html.empty()) io::write_text_file(given.html, report::html_report(graph, report));
  if (!given.snapshot.empty()) write_snapshot(graph, file, given.snapshot);
  if (!given.trace.empty())
    io::write_text_file(given.trace, report::write_trace(report::trace_of(graph, report), format));
  std::string_view before = "\n";
  for (const std::string& path : {given.html, given.snapshot, given.trace}) {
    if (path.empty() || given.json) continue;
    fmt::print("{}written    {}\n", before, path);
    before = {};
  }
  return status;
}

}  // namespace

void add_show(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("show", "Draw memory over the steps of a plan, and list what takes it");
  const auto given = std::make_shared<ShowArguments>();
  add_graph_argument(*command, given->graph);
  command->add_option("plan", given->plan, "Plan file (default: the given order, unplanned)");
  command->add_option("--allocator", given->allocator,
                      "Say what PyTorch's caching allocator reserves under these settings, as in "
                      "PYTORCH_ALLOC_CONF");
  command->add_option("--html", given->html, "Write a self-contained page with zoom");
  command->add_option("--snapshot", given->snapshot,
                      "Write a snapshot for PyTorch's memory_viz (.pickle)");
  command->add_option("--trace", given->trace,
                      "Write a trace: .json or .json.gz for Chrome, .pftrace for Perfetto");
  command->add_flag("--steps", given->steps,
                    "List the steps instead, by the names of ops and tensors");
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
