// `lowtide plan`: fit a graph into a budget.
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/interrupt.h"
#include "lowtide/cli/live_line.h"
#include "lowtide/cli/plan_keeper.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/driver/driver.h"
#include "lowtide/sim/budget.h"

namespace lowtide::cli {

namespace {

struct Arguments {
  std::string graph, budget, order = "free", solver = "auto", output;
  std::optional<double> time;
  std::optional<std::int64_t> work;
  std::uint64_t seed = 0;
  int threads = 0;
  std::vector<std::string> options;
  bool json = false;
};

Request make_request(const Arguments& given, const CancelToken& cancel) {
  constexpr double kDefaultSeconds = 10;
  Request request;
  request.solver = given.solver;
  request.limits.cancel = &cancel;
  request.limits.work = given.work;
  request.limits.seconds = given.time;
  // A work limit alone means no clock, so that the run repeats exactly.
  if (!given.time && !given.work) request.limits.seconds = kDefaultSeconds;
  request.seed = given.seed;
  request.threads = given.threads > 0
                        ? given.threads
                        : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (const std::string& option : given.options) {
    const auto sign = option.find('=');
    if (sign == std::string::npos)
      throw InputError("--option " + option,
                       "write NAME=VALUE; 'lowtide solvers --options' lists them");
    request.options.emplace_back(option.substr(0, sign), option.substr(sign + 1));
  }
  return request;
}

int run(const Arguments& given) {
  if (given.json && given.output == "-")
    throw InputError("-o -", "with --json, standard output is taken; name a file");
  const Interrupt interrupt;
  const Graph graph = load_graph(given.graph);
  Problem problem{graph, resolve_budget(parse_budget(given.budget), graph)};
  problem.order = given.order == "given" ? Order::given : Order::free;
  const PlanOutput output(problem, given.output);
  const SolverTable solvers = all_solvers();

  const auto start = std::chrono::steady_clock::now();
  Answer answer;
  std::string not_written;
  {
    Request request = make_request(given, interrupt.token());
    LiveLine line(problem, !given.json && is_terminal(2));
    {
      PlanKeeper keeper(output, request);
      request.watcher = [&](const Progress& progress) {
        line.update(progress);
        keeper.update(progress);
      };
      answer = solve(solvers, problem, request);
    }
    try {
      output.write(answer.outcome, request);
    } catch (const InputError& error) {
      not_written = error.what();
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  const PlanSummary summary{problem,    answer,          given.solver,
                            given.seed, seconds.count(), not_written.empty() ? given.output : ""};
  fmt::print("{}", given.json ? summary_json(summary) : summary_text(summary));
  if (!not_written.empty()) throw InputError("", not_written);
  return answer.outcome.plan ? kPlanFound : kNoPlan;
}

}  // namespace

void add_plan(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("plan", "Plan a graph into a memory budget");
  const auto given = std::make_shared<Arguments>();
  command
      ->add_option("graph", given->graph,
                   "Graph file (ours or networkx node-link; .gz; - reads standard input)")
      ->required();
  command
      ->add_option("--budget", given->budget,
                   "Bytes (8GiB, 512MB), share of the graph's own peak (80%), or of what is "
                   "plannable (act:50%)")
      ->required();
  command->add_option("--time", given->time, "Stop after so many seconds (10, or none with --work)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--work", given->work,
                   "Stop after so much work: the same result on every machine")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--order", given->order, "Keep the graph's order or choose one")
      ->check(CLI::IsMember({"free", "given"}))
      ->capture_default_str();
  std::vector<std::string> names;
  const SolverTable solvers = all_solvers();
  for (const auto& solver : solvers.all()) names.emplace_back(solver->name());
  command->add_option("--solver", given->solver, "Which solver; 'lowtide solvers' lists them")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->add_option("--option", given->options, "NAME=VALUE of the solver; may be repeated");
  command->add_option("--seed", given->seed, "Seed of all that is random")->capture_default_str();
  command->add_option("--threads", given->threads, "Threads to use (all cores)")
      ->check(CLI::Range(1, 4096));
  command->add_option("-o,--output", given->output, "Write the plan here (.json or .json.gz)");
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->footer("Ctrl-C returns the best plan so far; a second one ends at once.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
