// `lowtide sweep`: many plans, each on a thread of its own.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/base/parallel.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/footprint_flags.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/interrupt.h"
#include "lowtide/cli/live_line.h"
#include "lowtide/cli/machine_flags.h"
#include "lowtide/cli/search_flags.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/driver/driver.h"
#include "lowtide/io/json.h"
#include "lowtide/io/sweep_results.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/sweep_text.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::cli {

namespace {

struct SweepArguments {
  std::string file, results, csv;
  int workers = 0;
};

// Graphs that tasks share: each is read when its first task begins, and released after its last.
class SharedGraphs {
 public:
  explicit SharedGraphs(const std::vector<const io::SweepTask*>& tasks) {
    for (const io::SweepTask* task : tasks) ++slots_[task->graph].tasks;
  }
  std::shared_ptr<const Graph> take(const std::string& path) {
    Slot& slot = slots_.at(path);
    const std::scoped_lock lock(slot.mutex);
    if (!slot.graph) {
      GraphArgument argument;
      argument.path = path;
      slot.graph = std::make_shared<Graph>(load_named_graph(argument));
    }
    return --slot.tasks == 0 ? std::exchange(slot.graph, nullptr) : slot.graph;
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::size_t tasks = 0;
    std::shared_ptr<const Graph> graph;
  };
  std::map<std::string, Slot> slots_;
};

io::SweepFound found_of(const Graph& graph, const driver::FootprintAnswer& found, Bytes budget) {
  const Outcome& outcome = found.answer.outcome;
  const Ticks base = own_duration(graph);
  io::SweepFound row;
  row.budget = budget.count();
  row.base_duration = base.count();
  if (!found.answer.support.yes) {
    row.status = "unsupported";
    row.reason = found.answer.support.reason;
    return row;
  }
  row.status = to_string(outcome.status);
  row.reason = outcome.note;
  row.found_by = outcome.found_by;
  row.stopped_by = to_string(outcome.stopped_by);
  row.floor = outcome.bound.peak.count();
  if (outcome.smallest_peak) row.smallest_peak = outcome.smallest_peak->count();
  if (!outcome.plan) return row;
  row.peak = outcome.cost.peak.count();
  row.taken = found.taken ? found.taken->bytes.count() : outcome.cost.peak.count();
  row.duration = outcome.cost.duration.count();
  row.overhead_percent = overhead_percent(outcome.cost.duration, base);
  row.bound = outcome.bound.duration.count();
  const double gap = gap_percent(outcome.cost.duration, outcome.bound.duration);
  if (std::isfinite(gap)) row.gap_percent = gap;
  return row;
}

io::SweepFound plan_task(const solve::SolverTable& solvers, const io::SweepTask& task,
                         SharedGraphs& graphs, const CancelToken& cancel) {
  const auto start = std::chrono::steady_clock::now();
  io::SweepFound row;
  try {
    const std::shared_ptr<const Graph> graph = graphs.take(task.graph);
    SearchFlags search;
    search.solver = task.solver;
    search.options = task.options;
    search.order = task.order;
    search.time = task.time;
    search.work = task.work;
    const MachineFlags links{.techniques = task.techniques,
                             .device = task.device,
                             .link = task.link,
                             .derate = task.derate,
                             .host_budget = task.host_budget,
                             .costs = task.costs};
    const FootprintFlags footprint{.footprint = task.footprint, .allocator = task.allocator};
    const Question question = question_on(*graph, resolve_budget(parse_budget(task.budget), *graph),
                                          links.terms(search.problem_order(), *graph, task.graph));
    driver::Request request;
    request.solver = search.solver;
    request.limits = search.limits(cancel);
    request.seed = task.seed;
    request.threads = task.threads;
    request.options = search.solver_options();
    row = found_of(*graph, driver::solve_within(solvers, question, request, footprint.terms()),
                   question.problem.budget);
  } catch (const std::exception& error) {
    if (is_checked_fault(error)) throw;
    row.status = io::kSweepError;
    row.reason = error.what();
  }
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return row;
}

// "sweep.json" -> "sweep.results.jsonl", in the same folder.
std::string results_beside(const std::string& file) {
  if (file == "-") throw InputError("-o", "name the file of the results: the sweep is read from -");
  std::filesystem::path path(file);
  return path.replace_extension(".results.jsonl").string();
}

// A JSON string without its quotes, other values as they are.
std::string plain(const std::string& json) {
  const io::JsonDocument value(json);
  return value.root().is(io::JsonKind::string) ? std::string(value.root().as_string()) : json;
}

// What all paths begin with, up to a slash.
std::size_t common_folder(const std::vector<io::SweepTask>& tasks) {
  std::string common = plain(tasks.front().given.front().second);
  for (const io::SweepTask& task : tasks) {
    const std::string path = plain(task.given.front().second);
    common.resize(
        static_cast<std::size_t>(std::ranges::mismatch(common, path).in1 - common.begin()));
  }
  return common.find_last_of('/') == std::string::npos ? 0 : common.find_last_of('/') + 1;
}

std::string table_of(const std::vector<io::SweepTask>& tasks, const io::SweepRows& rows) {
  std::vector<std::string> settings;
  for (const auto& setting : tasks.front().given) settings.push_back(setting.first);
  const std::size_t folder = common_folder(tasks);
  std::vector<report::SweepLine> lines;
  for (const io::SweepTask& task : tasks) {
    const auto row = rows.find(task.key);
    if (row == rows.end()) continue;
    const io::SweepFound& found = row->second;
    report::SweepLine& line = lines.emplace_back();
    for (const auto& setting : task.given) line.given.push_back(plain(setting.second));
    line.given.front().erase(0, folder);  // the graph is the first setting
    line.status = found.status;
    line.budget = found.budget;
    line.peak = found.peak;
    line.overhead = found.overhead_percent;
    line.gap = found.gap_percent;
    line.reason = found.reason;
  }
  return report::sweep_text(settings, lines, output_style());
}

int run(const SweepArguments& given) {
  const std::vector<io::SweepTask> tasks = io::read_sweep(given.file);
  if (!given.csv.empty()) io::require_writable_file(given.csv);
  io::SweepResults results(given.results.empty() ? results_beside(given.file) : given.results);
  std::vector<const io::SweepTask*> left;
  for (const io::SweepTask& task : tasks)
    if (!results.has(task.key)) left.push_back(&task);

  const Interrupt interrupt;
  {
    const solve::SolverTable solvers = driver::all_solvers();
    SharedGraphs graphs(left);
    std::mutex mutex;
    std::size_t done = tasks.size() - left.size();
    const auto progress = [&] { return fmt::format("{} of {} planned", done, tasks.size()); };
    LiveLine line(progress(), is_terminal(2));
    parallel_for(left.size(), driver::threads_or_all(given.workers), [&](std::size_t i) {
      if (interrupt.token().cancelled()) return;
      io::SweepFound found = plan_task(solvers, *left[i], graphs, interrupt.token());
      if (interrupt.token().cancelled()) return;  // a plan that was cut short is no result
      const std::scoped_lock lock(mutex);
      results.add(*left[i], std::move(found));
      ++done;
      line.update(progress());
    });
  }

  if (!given.csv.empty()) io::write_text_file(given.csv, io::sweep_csv(tasks, results.rows()));
  if (given.csv != "-") fmt::print("{}", table_of(tasks, results.rows()));
  std::size_t done = 0, errors = 0;
  for (const io::SweepTask& task : tasks) {
    done += results.has(task.key) ? 1 : 0;
    const auto row = results.rows().find(task.key);
    errors += row != results.rows().end() && row->second.status == io::kSweepError ? 1 : 0;
  }
  fmt::print(given.csv == "-" ? stderr : stdout, "{} of {} planned, {} errors; results in {}\n",
             done, tasks.size(), errors, results.path());
  return done == tasks.size() ? kPlanFound : kNoPlan;
}

}  // namespace

void add_sweep(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("sweep", "Plan many graphs with many budgets and settings");
  const auto given = std::make_shared<SweepArguments>();
  command->add_option("file", given->file, "File of the sweep (JSON; - is standard input)")
      ->required();
  command->add_option("-o,--output", given->results,
                      "File of the results, one JSON object a line; a sweep that was stopped goes "
                      "on from it (FILE.results.jsonl)");
  command->add_option("--csv", given->csv,
                      "Write the results to this CSV file, too; - prints them and no table");
  command->add_option("--workers", given->workers, "Number of plans at the same time (all cores)")
      ->check(CLI::Range(1, 4096));
  command->footer("Ctrl-C ends the sweep; the same command goes on with it.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
