// `lowtide solvers`: what there is, what each is for, what is missing, and which engines of other
// people there are. With --options nothing is said of this machine, so that it is the same on all.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/cli/commands.h"
#include "lowtide/cli/terminal.h"
#include "lowtide/driver/driver.h"
#include "lowtide/engines/find.h"
#include "lowtide/report/plot_text.h"

namespace lowtide::cli {

namespace {

std::string range_text(const solve::OptionSpec& option) {
  if (option.choices.empty())
    return fmt::format("{:g} to {:g}, default {:g}{}", option.low, option.high,
                       option.default_number, option.of_ops ? "; OP:NUMBER for some ops" : "");
  return fmt::format("{}{}; default {}", option.several ? "any, between commas, of " : "",
                     fmt::join(option.choices, ", "), option.default_choice);
}

void print_json(const solve::SolverTable& table) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& solver : table.all()) {
    auto options = nlohmann::ordered_json::array();
    for (const solve::OptionSpec& option : solver->options())
      options.push_back(
          {{"name", option.name}, {"usage", option.usage}, {"values", range_text(option)}});
    const std::string missing = solver->missing();
    list.push_back(
        {{"name", solver->name()},
         {"summary", solver->summary()},
         {"traits", solver->traits().words()},
         {"available", missing.empty()},
         {"needs", missing.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(missing)},
         {"options", options}});
  }
  fmt::print("{}\n", list.dump(2));
}

// Name and traits, and the summary beside them in as many lines as it takes.
void print_solver(const solve::Solver& solver, std::size_t width) {
  constexpr std::size_t kIndent = 35;
  const std::string traits = fmt::format("{}", fmt::join(solver.traits().words(), ", "));
  std::string head = fmt::format("{:<10} {:<23} ", solver.name(), traits);
  const std::string summary =
      report::wrap(solver.summary(), std::max<std::size_t>(width, 2 * kIndent) - kIndent);
  for (std::size_t at = 0; at < summary.size(); head.assign(kIndent, ' ')) {
    const std::size_t end = summary.find('\n', at);
    fmt::print("{}{}\n", head, summary.substr(at, end - at));
    at = end + 1;
  }
}

void print_text(const solve::SolverTable& table, bool with_options) {
  for (const auto& solver : table.all()) {
    if (!with_options) {
      print_solver(*solver, output_style().width);
      continue;
    }
    fmt::print("{:<10} {}\n", solver->name(), solver->summary());
    for (const solve::OptionSpec& option : solver->options())
      fmt::print("{0:<10}   --option {1}=...  {2}\n{0:<10}     {3}\n", "", option.name,
                 option.usage, range_text(option));
  }
  if (with_options) return;
  fmt::print("\n");
  for (const engines::EngineKind kind : {engines::EngineKind::cpsat, engines::EngineKind::highs}) {
    const engines::EngineState engine = engines::find_engine(kind);
    const std::string_view name = to_string(kind);
    // The reason in `missing` begins with "NAME: ", as this line does.
    fmt::print("{:<10} {}\n", name,
               engine.missing.empty() ? engine.version + ", " + engine.paths.library
                                      : engine.missing.substr(name.size() + 2));
  }
}

}  // namespace

void add_solvers(CLI::App& app, int& status) {
  struct Arguments {
    bool json = false, options = false;
  };
  CLI::App* command =
      app.add_subcommand("solvers", "List the solvers, their traits and the engines found");
  const auto given = std::make_shared<Arguments>();
  command->add_flag("--json", given->json, "Print one JSON list and nothing else");
  command->add_flag("--options", given->options, "List the options of each solver");
  command->callback([given, &status] {
    const solve::SolverTable table = driver::all_solvers();
    if (given->json)
      print_json(table);
    else
      print_text(table, given->options);
    status = 0;
  });
}

}  // namespace lowtide::cli
