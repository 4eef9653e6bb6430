// `lowtide fit`: the smallest budget for some overhead.
#include "lowtide/driver/fit.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/cli/autosave.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/footprint_flags.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/interrupt.h"
#include "lowtide/cli/live_line.h"
#include "lowtide/cli/machine_flags.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/search_flags.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/io/curve_data.h"
#include "lowtide/io/text_file.h"
#include "lowtide/plan/budget.h"
#include "lowtide/report/curve_text.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::cli {

namespace {

struct FitArguments {
  GraphArgument graph;
  std::string overhead, output;
  SearchFlags search;
  MachineFlags links;
  FootprintFlags footprint;
  bool json = false;
};

Ticks time_limit(const std::string& overhead, const Graph& graph) {
  try {
    return overhead_limit(overhead, own_duration(graph));
  } catch (const InputError& error) {
    throw InputError("--" + error.place(), error.reason());
  }
}

std::string progress_text(const driver::FitProgress& progress) {
  return fmt::format("budget {}   below {} proven too small", report::bytes_text(progress.budget),
                     report::bytes_text(progress.floor));
}

// The plan file, and better ones of it as they come, from the solves and from the rounds.
class FitOutput {
 public:
  FitOutput(const Graph& graph, const driver::FitRequest& request, const std::string& path)
      : graph_(graph),
        path_(path),
        footprint_(request.footprint),
        autosave_(std::in_place, io::may_be_replaced(path)) {
    require_writable(path);
    found_by_.solver = request.settings.solver;
    found_by_.options = request.settings.options;
    found_by_.limits = request.settings.limits;
    found_by_.seed = request.settings.seed;
  }

  void update(const driver::FitProgress& progress) {
    if (!autosave_->wanted()) return;
    const std::lock_guard lock(mutex_);
    best_ = progress.so_far();
    save();
  }
  void find(const Plan& plan, const Cost& cost, std::string_view found_by) {
    if (!autosave_->wanted()) return;
    const std::lock_guard lock(mutex_);
    if (improve(best_, plan, cost, found_by)) save();
  }
  // At the end.
  void finish(const Fit& fit) {
    autosave_.reset();
    write(fit);
  }

 private:
  void save() {
    autosave_->save([this] {
      Fit fit;
      {
        const std::lock_guard lock(mutex_);
        fit = best_;
      }
      if (!fit.point) return;
      fit.point->outcome.note = kWrittenMeanwhile;
      write(fit);
    });
  }
  void write(const Fit& fit) const {
    const Question question = question_on(graph_, fit.point->budget, fit.terms);
    write_outcome(path_, question, fit.terms.full_link, fit.point->outcome, found_by_, footprint_,
                  fit.point->taken);
  }

  const Graph& graph_;
  std::string path_;
  driver::FootprintTerms footprint_;
  driver::Request found_by_;
  Fit best_;
  std::mutex mutex_;
  std::optional<Autosave> autosave_;
};

int run(const FitArguments& given) {
  if (given.json && given.output == "-")
    throw InputError("-o -", "with --json, standard output is taken; name a file");
  const Interrupt interrupt;
  const Graph graph = load_named_graph(given.graph);
  driver::FitRequest request;
  request.terms = given.links.terms(given.search.problem_order(), graph, given.graph.path);
  request.footprint = given.footprint.terms();
  request.time_limit = time_limit(given.overhead, graph);
  request.settings = {.solver = given.search.solver,
                      .options = given.search.solver_options(),
                      .limits = given.search.limits(interrupt.token()),
                      .seed = given.search.seed,
                      .threads = given.search.thread_count()};
  std::optional<FitOutput> output;
  if (!given.output.empty()) output.emplace(graph, request, given.output);
  const solve::SolverTable solvers = driver::all_solvers();

  const auto start = std::chrono::steady_clock::now();
  Fit result;
  {
    LiveLine line("no budget yet", !given.json && is_terminal(2));
    request.watcher = [&](const driver::FitProgress& progress) {
      line.update(progress_text(progress));
      if (output) output->update(progress);
    };
    if (output && request.footprint.kind == Footprint::live)
      request.settings.finds = [&](const Plan& plan, const Cost& cost, std::string_view found_by) {
        output->find(plan, cost, found_by);
      };
    result = driver::fit(solvers, graph, request);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  if (given.json)
    fmt::print("{}",
               io::fit_json(graph, result, {given.search.seed, seconds.count()}, given.output));
  else if (given.output != "-")
    fmt::print("{}{:<10} {:.3f} s\n", report::fit_text(graph, result, output_style()), "time",
               seconds.count());
  if (!result.point) return kNoPlan;
  if (output) output->finish(result);
  if (!given.json && !given.output.empty() && given.output != "-")
    fmt::print("{:<10} {}\n", "written", given.output);
  return kPlanFound;
}

}  // namespace

void add_fit(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("fit", "Find the smallest budget with a plan of at most this overhead");
  const auto given = std::make_shared<FitArguments>();
  add_graph_argument(*command, given->graph);
  command->add_option("--overhead", given->overhead, "Largest overhead of the plan (5%)")
      ->required();
  add_search_flags(*command, given->search);
  add_machine_flags(*command, given->links);
  add_footprint_flags(*command, given->footprint);
  command->add_option("-o,--output", given->output, "Write the plan here (.json or .json.gz)");
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->footer("Ctrl-C returns the best plan so far; a second one ends at once.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
