// `lowtide plan`: fit a graph into a budget.
#include <chrono>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/cli/autosave.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/footprint_flags.h"
#include "lowtide/cli/input.h"
#include "lowtide/cli/interrupt.h"
#include "lowtide/cli/machine_flags.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/search_flags.h"
#include "lowtide/cli/search_line.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/driver/driver.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/budget.h"
#include "lowtide/sim/check_plan.h"

namespace lowtide::cli {

namespace {

struct PlanArguments {
  GraphArgument graph;
  std::string budget, start, transforms, output;
  SearchFlags search;
  MachineFlags links;
  FootprintFlags footprint;
  bool json = false;
};

// A start's transforms are those asked for, or, where transforms are looked for, any that may be
// used.
void demand_transforms(const std::string& path, const Plan& start, const Question& question,
                       bool looked_for) {
  if (start.transforms == question.transforms) return;
  if (!looked_for)
    throw InputError(path,
                     "not usable as a start plan: its transforms differ from those of --transform");
  for (const Transform& transform : start.transforms)
    if (!has_technique(question.problem.techniques, kind_of(transform)))
      throw InputError(
          path,
          fmt::format("not usable as a start plan: it has a {}, which --techniques does not allow",
                      kind_of(transform)));
}

// A plan over the budget is something to begin from, too.
Plan load_start(const std::string& path, const Question& question, bool looked_for) {
  const Problem& problem = question.problem;
  PlanFile file = load_plan(path);
  file.claims = {};
  file.offsets.clear();
  file.footprint = Footprint::live;
  file.budget.reset();
  file.host_budget.reset();
  file.order = problem.order;
  const PlanVerdict verdict = check_plan(problem.graph, file);
  if (verdict.kind != PlanVerdict::Kind::holds)
    throw InputError(path, "not usable as a start plan: " + verdict.reason);
  demand_transforms(path, file.plan, question, looked_for);
  if (transfers(file.plan) && !problem.machine)
    throw InputError(
        path,
        "not usable as a start plan: it copies to the host; name the link (--device or --link)");
  return std::move(file.plan);
}

// `looked_for`: whether transforms are.
driver::Request make_request(const PlanArguments& given, const Question& question, bool looked_for,
                             const CancelToken& cancel) {
  driver::Request request;
  request.solver = given.search.solver;
  request.limits = given.search.limits(cancel);
  request.seed = given.search.seed;
  request.threads = given.search.thread_count();
  if (given.start == "auto" || given.start == "none")
    request.options.emplace_back("start", given.start);
  else if (!given.start.empty())
    request.starts.push_back(load_start(given.start, question, looked_for));
  for (auto& option : given.search.solver_options()) request.options.push_back(std::move(option));
  return request;
}

Outcome outcome_of(const solve::Progress& progress) {
  Outcome outcome;
  outcome.status = Status::feasible;
  outcome.plan = *progress.plan;
  outcome.cost = progress.cost;
  outcome.bound = progress.bound;
  outcome.found_by = progress.solver;
  outcome.note = kWrittenMeanwhile;
  return outcome;
}

int run(const PlanArguments& given) {
  if (given.json && given.output == "-")
    throw InputError("-o -", "with --json, standard output is taken; name a file");
  const Interrupt interrupt;
  const Graph graph = load_named_graph(given.graph);
  const Terms terms = given.links.terms(given.search.problem_order(), graph, given.graph.path,
                                        load_transforms(given.transforms, graph));
  const driver::FootprintTerms footprint = given.footprint.terms();
  const Question question =
      question_on(graph, resolve_budget(parse_budget(given.budget), graph), terms);
  require_writable(given.output);
  const solve::SolverTable solvers = driver::all_solvers();
  const bool looked_for = driver::looks_for_transforms(solvers, given.search.solver, question);

  const auto start = std::chrono::steady_clock::now();
  driver::FootprintAnswer found;
  const driver::Answer& answer = found.answer;
  std::string not_written;
  {
    driver::Request request = make_request(given, question, looked_for, interrupt.token());
    SearchLine line(graph, !given.json && is_terminal(2));
    {
      Autosave autosave(io::may_be_replaced(given.output));
      request.watcher = [&](const solve::Progress& progress) {
        line.update(progress);
        // Where another footprint counts, a plan is one only when it has been measured.
        if (progress.plan == nullptr || !autosave.wanted() || footprint.kind != Footprint::live)
          return;
        autosave.save([&, so_far = outcome_of(progress)] {
          write_outcome(given.output, question, terms.full_link, so_far, request);
        });
      };
      found = driver::solve_within(solvers, question, request, footprint);
    }
    try {
      if (!given.output.empty())
        write_outcome(given.output, question, terms.full_link, answer.outcome, request, footprint,
                      found.taken);
    } catch (const InputError& error) {
      not_written = error.what();
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  const PlanSummary summary{.graph = graph,
                            .budget = question.problem.budget,
                            .terms = terms,
                            .answer = answer,
                            .footprint = footprint,
                            .taken = found.taken,
                            .looked_for_transforms = looked_for,
                            .solver = given.search.solver,
                            .seed = given.search.seed,
                            .seconds = seconds.count(),
                            .plan_file = not_written.empty() ? given.output : ""};
  fmt::print("{}", given.json ? summary_json(summary) : summary_text(summary, output_style()));
  if (!not_written.empty()) throw InputError("", not_written);
  return answer.outcome.plan ? kPlanFound : kNoPlan;
}

}  // namespace

void add_plan(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("plan", "Plan a graph for a memory budget");
  const auto given = std::make_shared<PlanArguments>();
  add_graph_argument(*command, given->graph,
                     "Graph file (Lowtide's, networkx node-link or HLO text; may be .gz; - is "
                     "standard input)");
  command
      ->add_option("--budget", given->budget,
                   "Bytes (8GiB, 512MB), a share of the baseline peak (80%), or of the plannable "
                   "bytes (act:50%)")
      ->required();
  command->add_option(
      "--start", given->start,
      "Start plan (a file); auto, for moccasin and checkmate: a plan of the other solvers");
  command->add_option(
      "--transform", given->transforms,
      "Plan the graph that these transforms make: a file with a list of them, such as a plan file");
  add_search_flags(*command, given->search);
  add_machine_flags(*command, given->links);
  add_footprint_flags(*command, given->footprint);
  command->add_option("-o,--output", given->output, "Write the plan here (.json or .json.gz)");
  command->add_flag("--json", given->json, "Print one JSON object and nothing else");
  command->footer("Ctrl-C returns the best plan so far; a second one ends at once.");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
