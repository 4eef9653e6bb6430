// `lowtide curve`: a whole range of budgets in one run.
#include "lowtide/driver/curve.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/interrupt.h"
#include "lowtide/cli/live_line.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/search_flags.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/io/curve_data.h"
#include "lowtide/io/curve_html.h"
#include "lowtide/io/curve_text.h"
#include "lowtide/io/text_file.h"
#include "lowtide/io/units_text.h"
#include "lowtide/sim/budget.h"

namespace lowtide::cli {

namespace {

struct Arguments {
  std::string graph, from = "20%", to = "100%", csv, html, folder;
  std::int64_t points = 16;
  SearchFlags search;
  bool json = false;
};

Bytes end_of_range(const std::string& flag, const std::string& text, const Graph& graph) {
  try {
    return resolve_budget(parse_budget(text), graph);
  } catch (const InputError& error) {
    throw InputError(flag + " \"" + text + "\"", error.reason());
  }
}

CurveRequest make_request(const Arguments& given, const Graph& graph, const CancelToken& cancel) {
  CurveRequest request;
  request.order = given.search.problem_order();
  request.from = end_of_range("--from", given.from, graph);
  request.to = end_of_range("--to", given.to, graph);
  if (request.from > request.to)
    throw InputError("--from " + given.from,
                     fmt::format("is more than --to {}: {} against {}; give the smaller first",
                                 given.to, bytes_text(request.from), bytes_text(request.to)));
  request.points = static_cast<std::size_t>(given.points);
  request.settings = {.limits = given.search.limits(cancel),
                      .seed = given.search.seed,
                      .threads = given.search.thread_count()};
  return request;
}

std::string progress_text(const CurveProgress& progress) {
  return fmt::format("{} of {} points planned   {} settled   widest gap {:.2f} %   smallest {}",
                     progress.planned, progress.points, progress.settled, progress.widest_gap,
                     bytes_text(progress.smallest));
}

// Said before the search, not after it.
void prepare(const Arguments& given) {
  if (given.json && (given.csv == "-" || given.html == "-"))
    throw InputError(given.csv == "-" ? "--csv -" : "--html -",
                     "with --json, standard output is taken; name a file");
  require_writable(given.csv);
  require_writable(given.html);
  if (given.folder.empty()) return;
  std::error_code failed;
  std::filesystem::create_directories(given.folder, failed);
  if (failed || !std::filesystem::is_directory(given.folder))
    throw InputError("-o " + given.folder, "must be a folder, or one that can be made");
}

void write_plans(const Arguments& given, const Graph& graph, const Tradeoff& curve,
                 const CurveRequest& asked) {
  Request request;
  request.limits = asked.settings.limits;
  request.seed = asked.settings.seed;
  const auto write = [&](const TradeoffPoint& point) {
    if (!point.outcome.plan) return;
    const Problem problem{.graph = graph, .budget = point.budget, .order = curve.order};
    const auto name = fmt::format("{}.plan.json", point.budget.count());
    PlanOutput(problem, (std::filesystem::path(given.folder) / name).string())
        .write(point.outcome, request);
  };
  for (const TradeoffPoint& point : curve.points) write(point);
  if (curve.smallest) write(*curve.smallest);
}

int run(const Arguments& given) {
  prepare(given);
  const Interrupt interrupt;
  const Graph graph = load_graph(given.graph);
  const SolverTable solvers = all_solvers();
  CurveRequest request = make_request(given, graph, interrupt.token());

  const auto start = std::chrono::steady_clock::now();
  Tradeoff result;
  {
    LiveLine line("no point planned yet", !given.json && is_terminal(2));
    request.watcher = [&](const CurveProgress& progress) { line.update(progress_text(progress)); };
    result = curve(solvers, graph, request);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  const bool text = !given.json && given.csv != "-" && given.html != "-";
  if (given.json) fmt::print("{}", curve_json(graph, result, {given.search.seed, seconds.count()}));
  if (text) {
    fmt::print("{}", curve_text(graph, result, output_style()));
    fmt::print("{:<10} {:.3f} s, stopped by: {}\n", "time", seconds.count(),
               to_string(result.stopped_by));
  }
  const auto written = [&](const std::string& path) {
    if (text) fmt::print("{:<10} {}\n", "written", path);
  };
  if (!given.csv.empty()) {
    write_text_file(given.csv, curve_csv(graph, result));
    written(given.csv);
  }
  if (!given.html.empty()) {
    write_text_file(given.html, html_curve(graph, result));
    written(given.html);
  }
  if (!given.folder.empty()) {
    write_plans(given, graph, result, request);
    written(given.folder);
  }
  for (const TradeoffPoint& point : result.points)
    if (point.outcome.plan) return kPlanFound;
  return kNoPlan;
}

}  // namespace

void add_curve(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("curve", "Plan a whole range of budgets: overhead against memory");
  const auto given = std::make_shared<Arguments>();
  command->add_option("graph", given->graph, "Graph file")->required();
  command
      ->add_option("--from", given->from,
                   "Smallest budget: bytes (8GiB), share of the own peak (20%), act:20%")
      ->capture_default_str();
  command->add_option("--to", given->to, "Largest budget")->capture_default_str();
  command->add_option("--points", given->points, "So many budgets, evenly spaced")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{10000}))
      ->capture_default_str();
  add_search_flags(*command, given->search);
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->add_option("--csv", given->csv, "Write the points here; - prints them and nothing else");
  command->add_option("--html", given->html, "Write one self-contained page");
  command->add_option("-o,--output", given->folder,
                      "Write the plan of each point into this folder, named by its budget");
  command->footer(
      "The limits are for the whole curve. Ctrl-C returns the best so far; a second one ends at "
      "once.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
