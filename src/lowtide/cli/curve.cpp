// `lowtide curve`: a whole range of budgets in one run.
#include "lowtide/driver/curve.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/cli/autosave.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/curve_output.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/footprint_flags.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/interrupt.h"
#include "lowtide/cli/live_line.h"
#include "lowtide/cli/machine_flags.h"
#include "lowtide/cli/search_flags.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/io/curve_data.h"
#include "lowtide/report/curve_text.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/budget.h"

namespace lowtide::cli {

namespace {

struct CurveArguments {
  GraphArgument graph;
  std::string from = "20%", to = "100%", csv, html, folder;
  std::int64_t points = 16;
  SearchFlags search;
  MachineFlags links;
  FootprintFlags footprint;
  bool json = false;
};

Bytes end_of_range(const std::string& flag, const std::string& text, const Graph& graph) {
  try {
    return resolve_budget(parse_budget(text), graph);
  } catch (const InputError& error) {
    throw InputError(flag + " \"" + text + "\"", error.reason());
  }
}

driver::CurveRequest make_request(const CurveArguments& given, const Graph& graph,
                                  const CancelToken& cancel) {
  driver::CurveRequest request;
  request.terms = given.links.terms(given.search.problem_order(), graph, given.graph.path);
  request.footprint = given.footprint.terms();
  request.from = end_of_range("--from", given.from, graph);
  request.to = end_of_range("--to", given.to, graph);
  if (request.from > request.to)
    throw InputError(
        "--from " + given.from,
        fmt::format("is more than --to {}: {} against {}; give the smaller first", given.to,
                    report::bytes_text(request.from), report::bytes_text(request.to)));
  request.points = static_cast<std::size_t>(given.points);
  request.settings = {.solver = given.search.solver,
                      .options = given.search.solver_options(),
                      .limits = given.search.limits(cancel),
                      .seed = given.search.seed,
                      .threads = given.search.thread_count()};
  return request;
}

std::string progress_text(const driver::CurveProgress& progress) {
  return fmt::format("{} of {} points planned   {} settled   widest gap {:.2f} %   smallest {}",
                     progress.planned, progress.points, progress.settled, progress.widest_gap,
                     report::bytes_text(progress.smallest));
}

// Keeps the files up to date while the curve is searched: after each round, and during the solves.
class CurveKeeper {
 public:
  explicit CurveKeeper(CurveOutput& output) : output_(output), autosave_(output.has_files()) {}

  void update(const driver::CurveProgress& progress) {
    if (!autosave_.wanted()) return;
    const std::lock_guard lock(mutex_);
    best_ = progress.so_far();
    save();
  }
  void find(const Plan& plan, const Cost& cost, std::string_view found_by) {
    if (!autosave_.wanted()) return;
    const std::lock_guard lock(mutex_);
    if (improve(best_, plan, cost, found_by)) save();
  }

 private:
  void save() {
    autosave_.save([this] {
      Tradeoff curve;
      {
        const std::lock_guard lock(mutex_);
        curve = best_;
      }
      output_.write_so_far(std::move(curve));
    });
  }

  CurveOutput& output_;
  Tradeoff best_;
  std::mutex mutex_;
  Autosave autosave_;
};

int run(const CurveArguments& given) {
  if (given.json && (given.csv == "-" || given.html == "-"))
    throw InputError(given.csv == "-" ? "--csv -" : "--html -",
                     "with --json, standard output is taken; name a file");
  const Interrupt interrupt;
  const Graph graph = load_named_graph(given.graph);
  const solve::SolverTable solvers = driver::all_solvers();
  driver::CurveRequest request = make_request(given, graph, interrupt.token());
  CurveOutput output(graph, request, {given.csv, given.html, given.folder});

  const auto start = std::chrono::steady_clock::now();
  Tradeoff result;
  {
    LiveLine line("no point planned yet", !given.json && is_terminal(2));
    CurveKeeper autosave(output);
    request.watcher = [&](const driver::CurveProgress& progress) {
      line.update(progress_text(progress));
      autosave.update(progress);
    };
    // Where another footprint counts, a plan is one only when it has been measured.
    if (request.footprint.kind == Footprint::live)
      request.settings.finds = [&](const Plan& plan, const Cost& cost, std::string_view found_by) {
        autosave.find(plan, cost, found_by);
      };
    result = driver::curve(solvers, graph, request);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  const bool text = !given.json && given.csv != "-" && given.html != "-";
  if (given.json)
    fmt::print("{}", io::curve_json(graph, result, {given.search.seed, seconds.count()}));
  if (text) {
    fmt::print("{}", report::curve_text(graph, result, output_style()));
    fmt::print("{:<10} {:.3f} s, stopped by: {}\n", "time", seconds.count(),
               to_string(result.stopped_by));
  }
  for (const std::string& path : output.write(result))
    if (text) fmt::print("{:<10} {}\n", "written", path);
  for (const TradeoffPoint& point : result.points)
    if (point.outcome.plan) return kPlanFound;
  return kNoPlan;
}

}  // namespace

void add_curve(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("curve", "Plan a range of budgets: overhead against memory");
  const auto given = std::make_shared<CurveArguments>();
  add_graph_argument(*command, given->graph);
  command
      ->add_option("--from", given->from,
                   "Smallest budget: bytes (8GiB), share of the baseline peak (20%), act:20%")
      ->capture_default_str();
  command->add_option("--to", given->to, "Largest budget")->capture_default_str();
  command->add_option("--points", given->points, "Number of budgets, evenly spaced")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{10000}))
      ->capture_default_str();
  add_search_flags(*command, given->search);
  add_machine_flags(*command, given->links);
  add_footprint_flags(*command, given->footprint);
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->add_option("--csv", given->csv,
                      "Write the points to this CSV file; - prints them and nothing else");
  command->add_option("--html", given->html, "Write a self-contained page");
  command->add_option("-o,--output", given->folder,
                      "Write the plan of each point into this folder, named by its budget");
  command->footer(
      "The limits are for the whole curve. Ctrl-C returns the best plans so far; a second one ends "
      "at once.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
