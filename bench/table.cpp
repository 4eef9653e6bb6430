// The table of all solvers over many graphs: load and simulation time, and for each solver
// overhead, peak and time at five budgets. Prints a block for each graph and writes every figure as
// CSV.
//
// Times are wall clock of this run; compare them within a run only.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/driver/driver.h"
#include "lowtide/graph/generate.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/units_text.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"

namespace {

using namespace lowtide;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Settings {
  std::vector<std::string> paths;
  std::string csv = "build/bench.csv", order = "given";
  std::size_t most_ops = 100000;
  double seconds = 10;
  std::vector<int> shares = {90, 80, 65, 50, 35};
  std::uint64_t seed = 1;
};

class Table {
 public:
  explicit Table(const Settings& settings)
      : settings_(settings), csv_(settings.csv), solvers_(all_solvers()) {
    if (!csv_) throw InputError("", "cannot be written", settings.csv);
    csv_ << "graph,ops,links,load_s,simulate_s,own_peak,share_percent,budget,order,solver,status,"
            "overhead_percent,bound_percent,peak,time_s\n";
  }

  void add(const std::string& name, const Graph& graph, double load_seconds) {
    auto start = Clock::now();
    const Bytes peak = own_peak(graph);
    const double simulate_seconds = since(start);
    const std::string facts =
        fmt::format("{},{},{},{:.4f},{:.4f},{}", name, graph.op_count(), graph.link_count(),
                    load_seconds, simulate_seconds, peak.count());
    fmt::print("\n{}: {} ops, {} links, own peak {}; load {:.3f} s, simulate {:.3f} s\n", name,
               graph.op_count(), graph.link_count(), bytes_text(peak), load_seconds,
               simulate_seconds);
    fmt::print("{:>6}", "budget");
    for (const auto& solver : solvers_.all()) fmt::print("{:>18}", solver->name());
    fmt::print("\n");
    for (const int share : settings_.shares) {
      fmt::print("{:>4} %", share);
      for (const auto& solver : solvers_.all())
        fmt::print("{:>18}", cell(graph, facts, share, *solver));
      fmt::print("\n");
      std::fflush(stdout);
    }
  }

 private:
  std::string cell(const Graph& graph, const std::string& facts, int share, const Solver& solver) {
    Problem problem{graph, resolve_budget(parse_budget(std::to_string(share) + "%"), graph)};
    problem.order = settings_.order == "given" ? Order::given : Order::free;
    Request request;
    request.solver = solver.name();
    request.limits.seconds = settings_.seconds;
    request.seed = settings_.seed;
    const auto start = Clock::now();
    const Answer answer = solve(solvers_, problem, request);
    const double seconds = since(start);
    const Outcome& outcome = answer.outcome;
    const Ticks base = graph.total_time();
    csv_ << fmt::format(
        "{},{},{},{},{},{},{},{:.4f},{},{:.4f}\n", facts, share, problem.budget.count(),
        settings_.order, solver.name(),
        answer.support.yes ? to_string(outcome.status) : "unsupported",
        outcome.plan ? fmt::format("{:.4f}", overhead_percent(outcome.cost.duration, base)) : "",
        overhead_percent(std::max(base, outcome.bound.duration), base),
        outcome.plan ? std::to_string(outcome.cost.peak.count()) : "", seconds);
    if (!answer.support.yes) return "-";
    if (outcome.status == Status::infeasible) return fmt::format("infeasible {:.2f}s", seconds);
    if (outcome.plan)
      return fmt::format("{:.2f}% {:.2f}s", overhead_percent(outcome.cost.duration, base), seconds);
    if (!outcome.smallest_peak) return fmt::format("none {:.2f}s", seconds);
    const double reached = 100.0 * static_cast<double>(outcome.smallest_peak->count()) /
                           static_cast<double>(own_peak(graph).count());
    return fmt::format("({:.0f}%) {:.2f}s", reached, seconds);
  }

  const Settings& settings_;
  std::ofstream csv_;
  SolverTable solvers_;
};

std::vector<std::string> graph_files(const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      const std::string file = entry.path().string();
      if (entry.is_regular_file() && (file.ends_with(".json") || file.ends_with(".json.gz")) &&
          !file.ends_with(".plan.json") && !file.ends_with(".plan.json.gz"))
        files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Every solver on many graphs: overhead, peak, time.", "lowtide_bench");
  app.add_option("paths", settings.paths, "Graph files, or folders of them");
  app.add_option("--csv", settings.csv, "Where all figures go")->capture_default_str();
  app.add_option("--order", settings.order, "given or free")
      ->check(CLI::IsMember({"given", "free"}))
      ->capture_default_str();
  app.add_option("--generated", settings.most_ops, "Generated graphs up to so many ops; 0: none")
      ->capture_default_str();
  app.add_option("--time", settings.seconds, "Seconds for each solve")->capture_default_str();
  app.add_option("--shares", settings.shares, "Budgets, per cent of the graph's own peak")
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "Of generated graphs and solvers")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    Table table(settings);
    fmt::print("overhead and time; (share of the peak that was reached) where no plan was found\n");
    for (const std::string& file : graph_files(settings.paths)) {
      const auto start = Clock::now();
      const GraphFile read = read_graph(file);
      const double seconds = since(start);
      // The folder too: collections name their graphs after the same networks.
      const auto path = std::filesystem::absolute(file);
      const auto name = path.filename().string();
      table.add(path.parent_path().filename().string() + "/" + name.substr(0, name.find('.')),
                read.graph, seconds);
    }
    for (std::size_t ops = 1000; ops <= settings.most_ops; ops *= 10)
      for (std::string_view kind : generator_kinds()) {
        const Graph made = generate(kind, ops, settings.seed);
        const std::string text = write_graph(made);
        const auto start = Clock::now();
        const GraphFile read = read_graph_text(text, "generated");
        table.add(fmt::format("{}-{}", kind, ops), read.graph, since(start));
      }
  } catch (const InputError& error) {
    fmt::print(stderr, "lowtide_bench: {}\n", error.what());
    return 2;
  }
  fmt::print("\nall figures: {}\n", settings.csv);
  return 0;
}
