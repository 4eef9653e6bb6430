// `lowtide demo`: a first plan, with nothing at hand but the command.
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "lowtide/base/error.h"
#include "lowtide/cli/commands.h"
#include "lowtide/cli/demo_graph.h"
#include "lowtide/cli/exit_code.h"
#include "lowtide/cli/interrupt.h"
#include "lowtide/cli/open_page.h"
#include "lowtide/cli/plan_output.h"
#include "lowtide/cli/search_flags.h"
#include "lowtide/cli/search_line.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/driver/driver.h"
#include "lowtide/io/graph_json.h"
#include "lowtide/io/text_file.h"
#include "lowtide/report/report_html.h"
#include "lowtide/report/report_text.h"
#include "lowtide/sim/budget.h"

namespace lowtide::cli {

namespace {

struct DemoArguments {
  std::string budget = "50%", output = "lowtide-demo.html";
  std::optional<double> time;
  bool no_open = false;
};

constexpr double kDemoSeconds = 5;

Graph demo_graph() {
  const std::string_view packed(reinterpret_cast<const char*>(kDemoGraph), std::size(kDemoGraph));
  return io::read_graph_text(io::gunzip(packed), "the graph of the demo").graph;
}

driver::Answer solve_demo(const Question& question, const driver::Request& asked) {
  SearchLine line(question.problem.graph, is_terminal(2));
  driver::Request request = asked;
  request.watcher = [&](const solve::Progress& progress) { line.update(progress); };
  return driver::solve(driver::all_solvers(), question, request);
}

// The text and the page of the same plan.
void show_demo(const Problem& problem, const Outcome& outcome, const DemoArguments& given) {
  report::Report report = report::make_report(problem.graph, &*outcome.plan, problem.budget);
  report.bound = outcome.bound.duration;
  fmt::print("\n{}", report::text_report(report, output_style()));
  io::write_text_file(given.output, report::html_report(problem.graph, report));
  const std::string page = std::filesystem::absolute(given.output).lexically_normal().string();
  // A person looks, not a script.
  const bool opened = !given.no_open && is_terminal(1) && open_page(page);
  fmt::print(
      "\nMemory over time, before and after{}: {}\n"
      "A graph of your own: lowtide plan GRAPH --budget 50%\n"
      "A model in PyTorch:  lowtide.torch.optimize(model, inputs, budget=\"50%\")\n",
      opened ? ", opened in your browser" : "; open this page in a browser", page);
}

int run(const DemoArguments& given) {
  if (given.output == "-") throw InputError("--output -", "the page goes into a file; name one");
  const Interrupt interrupt;
  const Graph graph = demo_graph();
  const Terms terms = terms_of({}, graph);
  const Question question =
      question_on(graph, resolve_budget(parse_budget(given.budget), graph), terms);
  require_writable(given.output);

  driver::Request request;
  request.limits =
      driver::limits_or_default(given.time.value_or(kDemoSeconds), std::nullopt, interrupt.token());
  request.threads = driver::threads_or_all(0);
  const auto start = std::chrono::steady_clock::now();
  const driver::Answer answer = solve_demo(question, request);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{}", summary_text({.graph = graph,
                                 .budget = question.problem.budget,
                                 .terms = terms,
                                 .answer = answer,
                                 .looked_for_transforms = false,
                                 .solver = request.solver,
                                 .seed = request.seed,
                                 .seconds = seconds.count(),
                                 .plan_file = ""},
                                output_style()));
  if (!answer.outcome.plan) return kNoPlan;
  show_demo(question.problem, answer.outcome, given);
  return kPlanFound;
}

}  // namespace

void add_demo(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand(
      "demo", "Plan a training step of a ResNet-50 for half its memory, and draw the plan");
  const auto given = std::make_shared<DemoArguments>();
  command->add_option("--budget", given->budget, "Bytes, or a share of the baseline peak")
      ->capture_default_str();
  add_time_flag(*command, given->time, fmt::format("Time limit in seconds ({})", kDemoSeconds));
  command->add_option("-o,--output", given->output, "Output file of the page")
      ->capture_default_str();
  command->add_flag(
      "--no-open", given->no_open,
      "Print the page's path, do not open it (the default without a desktop or a terminal)");
  command->callback([given, &status] { status = run(*given); });
}

}  // namespace lowtide::cli
