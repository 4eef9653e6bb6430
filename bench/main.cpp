// Measures solvers: a suite of graphs and budgets, or those named on the command line. Prints a
// line a run and writes every figure as CSV; tables.py and anytime.py make tables and pictures of
// them.
//
// Overheads at 0.1, 1 and 10 seconds come from one run. Times are wall clock: compare them within a
// machine only, and leave it alone meanwhile. With --work a run counts work instead, and its
// figures are the same on every machine, however loaded.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/plan/terms.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"

#include "bench/csv.h"
#include "bench/measure.h"
#include "bench/suite.h"
#include "bench/variant.h"

namespace {

using namespace lowtide;
using namespace lowtide::bench;

struct Settings {
  std::vector<std::string> graphs, sets;
  std::string suite = "bench/suite.csv", data, out = "build/bench";
  std::vector<std::string> budgets = {"50%"}, orders = {"given"}, solvers = {"auto"};
  Variant variant;
  bool ablation = false, dry = false;
  double seconds = 10;
  std::optional<std::int64_t> work;  // counted, in place of the seconds
  std::string link;
  std::uint64_t seeds = 1;
  int threads = 1;
};

std::vector<Row> rows_of(const Settings& settings) {
  std::vector<std::string> absent;
  if (settings.graphs.empty()) {
    std::vector<Row> rows = read_suite(settings.suite);
    if (!settings.sets.empty())
      std::erase_if(rows, [&](const Row& row) {
        return std::find(settings.sets.begin(), settings.sets.end(), row.set) ==
               settings.sets.end();
      });
    rows = find_graphs(rows, settings.data, absent);
    for (const std::string& graph : absent) fmt::print("skipped, not there: {}\n", graph);
    return rows;
  }
  std::vector<Row> rows;
  for (const std::string& graph : settings.graphs)
    rows.push_back(
        {"named", graph, settings.budgets, settings.orders, settings.solvers, settings.ablation});
  rows = find_graphs(rows, settings.data, absent);
  if (!absent.empty())
    throw InputError("", "is no graph file, folder or generated graph", absent[0]);
  return rows;
}

std::vector<std::string> solver_names(const solve::SolverTable& solvers, const Row& row) {
  std::vector<std::string> names;
  for (const std::string& name : row.solvers) {
    if (name != "all") {
      names.push_back(name);
      continue;
    }
    for (const auto& solver : solvers.all()) names.emplace_back(solver->name());
  }
  return names;
}

class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        all_(driver::all_solvers()),
        solvers_(vary(all_, settings.variant)),
        rows_(rows_of(settings)) {
    for (const Row& row : rows_)
      for (const std::string& solver : solver_names(solvers_, row))
        total_ +=
            row.budgets.size() * row.orders.size() * settings.seeds * variants(row, solver).size();
  }

  void run() {
    fmt::print("{} runs of {}: {}\n", total_,
               settings_.work ? fmt::format("{} units of work", *settings_.work)
                              : fmt::format("{} s at most", settings_.seconds),
               time_text(static_cast<double>(total_) * seconds_a_run()));
    if (settings_.dry) return;
    CsvFiles files(settings_.out);
    for (const Row& row : rows_) {
      const Graph graph = open_graph(row.graph);
      for (const std::string& order : row.orders)
        for (const std::string& budget : row.budgets)
          for (const std::string& solver : solver_names(solvers_, row))
            for (const Variant& variant : variants(row, solver))
              run(files, row, graph, budget, order, solver, variant);
    }
    fmt::print("all figures: {}/rows.csv, {}/history.csv\n", settings_.out, settings_.out);
  }

 private:
  std::vector<Variant> variants(const Row& row, const std::string& solver) const {
    std::vector<Variant> list = {{}};
    if (row.ablation)
      for (Variant& variant : ablations(solvers_, solver)) list.push_back(std::move(variant));
    return list;
  }

  // Leaving out a part that does not take the problem anyway changes nothing.
  bool telling(const Variant& variant, const Problem& problem) const {
    return std::all_of(variant.without.begin(), variant.without.end(),
                       [&](const std::string& name) {
                         return solve::support_of(*solvers_.find(name), problem).yes;
                       });
  }

  void run(CsvFiles& files, const Row& row, const Graph& graph, const std::string& budget,
           const std::string& order, const std::string& solver, const Variant& variant) {
    AskedTerms terms{.order = order == "given" ? Order::given : Order::free};
    if (!settings_.link.empty()) terms.link = settings_.link;
    const Question question =
        question_on(graph, resolve_budget(parse_budget(budget), graph), terms_of(terms, graph));
    const Problem& problem = question.problem;
    if (!telling(variant, problem)) {
      done_ += settings_.seeds;
      return;
    }
    const solve::SolverTable varied = vary(solvers_, variant);
    Variant label = settings_.variant;
    label.options.insert(label.options.end(), variant.options.begin(), variant.options.end());
    label.without.insert(label.without.end(), variant.without.begin(), variant.without.end());
    Run asked{.set = row.set,
              .graph = graph_name(row.graph),
              .budget = budget,
              .solver = solver,
              .variant = label.label(),
              .problem = &problem,
              .own_peak = own_peak(graph),
              .seed = 1,
              .threads = settings_.threads,
              .work = settings_.work,
              .link = settings_.link};
    if (!settings_.work) asked.seconds = settings_.seconds;
    for (; asked.seed <= settings_.seeds; ++asked.seed) {
      driver::Request request;
      request.solver = solver;
      request.limits.seconds = asked.seconds;
      request.limits.work = asked.work;
      request.seed = asked.seed;
      request.threads = settings_.threads;
      const Measurement measured = measure(varied, question, request);
      files.add(asked, measured);
      ++done_;
      report(asked, order, measured);
    }
  }

  void report(const Run& asked, const std::string& order, const Measurement& measured) const {
    const double left = static_cast<double>(total_ - done_) * seconds_a_run();
    std::string found = measured.status;
    if (measured.overhead())
      found = fmt::format("{:.4g} %, bound {:.4g} %", *measured.overhead(), measured.bound());
    if (!measured.failure.empty()) found += ": " + measured.failure;
    const std::string variant = asked.variant == "base" ? "" : " " + asked.variant;
    fmt::print("[{}/{}, {} left] {} {} {} {}{}: {} in {:.2f} s\n", done_, total_, time_text(left),
               asked.graph, asked.budget, order, asked.solver, variant, found, measured.seconds);
    std::fflush(stdout);
  }

  double seconds_a_run() const {
    return settings_.work ? static_cast<double>(*settings_.work) / driver::kWorkPerSecond
                          : settings_.seconds;
  }

  static std::string time_text(double seconds) {
    return seconds < 120 ? fmt::format("{:.0f} s", seconds)
                         : fmt::format("{:.0f} min", seconds / 60);
  }

  const Settings& settings_;
  solve::SolverTable all_, solvers_;
  std::vector<Row> rows_;
  std::size_t total_ = 0, done_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Overhead, bound and time of solvers on many graphs.", "lowtide_bench");
  app.add_option(
      "graphs", settings.graphs,
      "Graph files, folders (FOLDER/) or generated graphs (resnet-1000) instead of the suite");
  app.add_option("--budget", settings.budgets, "Of named graphs, as in 80%,50%")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--order", settings.orders, "Of named graphs: given, free or both")
      ->check(CLI::IsMember({"given", "free"}))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--solver", settings.solvers, "For named graphs; all: each of them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_flag("--ablation", settings.ablation,
               "Named graphs again without each part and with each switch the other way round");
  app.add_option("--suite", settings.suite, "What is measured")->capture_default_str();
  app.add_option("--set", settings.sets, "Only these sets of the suite")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--data", settings.data, "What DATA/ stands for in the suite");
  app.add_option("--option", settings.variant.options, "solver.name=value, of any part")
      ->allow_extra_args(false);
  app.add_option("--without", settings.variant.without, "Parts that auto does not have")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--time", settings.seconds, "Seconds a run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--work", settings.work,
                 "Units of work a run instead of seconds: the same figures on every machine")
      ->check(CLI::PositiveNumber);
  app.add_option("--link", settings.link, "A link to the host, as in 12GB/s; plans may offload");
  app.add_option("--seeds", settings.seeds, "Runs, with the seeds 1, 2, ...")
      ->capture_default_str();
  app.add_option("--threads", settings.threads, "Of each run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--out", settings.out, "Folder of the CSV files")->capture_default_str();
  app.add_flag("--dry", settings.dry, "Say how long it would take, and stop");
  CLI11_PARSE(app, argc, argv);
  try {
    Bench(settings).run();
  } catch (const InputError& error) {
    fmt::print(stderr, "lowtide_bench: {}\n", error.what());
    return 2;
  }
  return 0;
}
