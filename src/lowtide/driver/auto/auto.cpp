// Problem: which solver for this graph, this budget and this order?
//
// Idea: no solver is best everywhere. The table in phases.cpp says which phase runs when. The
// bounds and the constructive solvers take milliseconds and run first, one after the other, each
// from the best plan so far. Then epochs follow, each twice as long as the one before. In an epoch
// several lanes of the search (tasks that run side by side) anneal from the best plan. A lane
// follows a recipe (recipes.cpp), which a bandit (choice.h) chooses by how much each recipe has
// shortened the best plan. The bounds get a share of the work. At the end of an epoch plans and
// bounds are merged. The run ends when a plan is proven optimal, when the budget is proven
// infeasible, or at a limit; without any limit it ends after kUnlimitedEpochs (runner.cpp).
//
// With a free order, the first bounds are computed for the given order. Most lanes keep the order
// of the best plan until lanes that change the order win more.
//
// Without a time limit an epoch has a fixed number of lanes, which exchange nothing: the same seed
// gives the same plan, whatever the number of threads. With a time limit an epoch has one lane for
// each thread, and plans are reported as soon as a lane finds them.
//
// Invariant: no long-running solver keeps the others from running, and each epoch begins from the
// best plan of all epochs before it.
//
// Loses: against a single solver that needs the work of many epochs, since each epoch restarts it.
#include "lowtide/driver/auto/auto.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/driver/auto/phases.h"
#include "lowtide/driver/auto/recipes.h"
#include "lowtide/driver/auto/runner.h"

namespace lowtide::driver {

namespace {

// The options of `auto`. Each line of the three tables has a switch ("bounds", "cool") and a number
// (a phase its share: "bounds-share"; a recipe its weight: "cool-weight").
class AutoOptions {
 public:
  AutoOptions() {
    for (const Phase& phase : phases()) {
      const bool in_epoch = phase.when == When::before_search || phase.when == When::search;
      add(phase.name, "phase: " + std::string(phase.summary), "-share",
          in_epoch ? "share of a lane's work" : "share of the remaining limits", phase.share, 1);
    }
    for (const Recipe& recipe : recipes())
      add(recipe.name, "search recipe: " + std::string(recipe.summary), "-weight",
          "weight in the choice of a recipe", recipe.weight, 100);
    for (const OrderRecipe& recipe : order_recipes())
      add(recipe.name, "with a free order: " + std::string(recipe.summary), "-weight",
          "weight in the choice with a free order", recipe.weight, 100);
  }

  std::span<const solve::OptionSpec> specs() const { return specs_; }

 private:
  // An OptionSpec does not own its texts. The deque does, and never moves them.
  std::string_view stored(std::string text) { return texts_.emplace_back(std::move(text)); }

  void add(std::string_view name, std::string summary, std::string_view suffix,
           std::string_view number_usage, double number, double most) {
    specs_.push_back(solve::switch_option(name, stored(std::move(summary))));
    specs_.push_back({.name = stored(std::string(name) + std::string(suffix)),
                      .usage = number_usage,
                      .default_number = number,
                      .low = 0,
                      .high = most});
  }

  std::deque<std::string> texts_;
  std::vector<solve::OptionSpec> specs_;
};

const AutoOptions& auto_options() {
  static const AutoOptions options;
  return options;
}

// The share or weight of each line of a table; 0 for a line that is switched off.
template <class Lines>
std::vector<double> numbers_of_lines(const solve::Options& options, const Lines& lines,
                                     std::string_view suffix) {
  std::vector<double> found;
  for (const auto& line : lines)
    found.push_back(
        options.on(line.name) ? options.number(std::string(line.name) + std::string(suffix)) : 0);
  return found;
}

class Auto final : public solve::Solver {
 public:
  std::string_view name() const override { return "auto"; }
  std::string_view summary() const override {
    return "portfolio: constructive solvers, then search and bounds, each from the best plan so "
           "far; the default";
  }
  std::span<const solve::OptionSpec> options() const override { return auto_options().specs(); }
  solve::Traits traits() const override {
    return {solve::Trait::portfolio, solve::Trait::transfers};
  }
  solve::Support supports(const Problem& problem) const override {
    return solve::least_time_only(problem);
  }

  Outcome solve(const Problem& problem, solve::Context& context) const override {
    const solve::Options& options = context.options();
    Runner(problem, context,
           {.phase_shares = numbers_of_lines(options, phases(), "-share"),
            .recipe_weights = numbers_of_lines(options, recipes(), "-weight"),
            .order_weights = numbers_of_lines(options, order_recipes(), "-weight")})
        .run();
    if (!context.engine_believed())
      context.set_note(
          "an engine or a registered solver claimed a lower bound above the duration of a verified "
          "plan; the bound is ignored");
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<solve::Solver> make_auto() { return std::make_unique<Auto>(); }

}  // namespace lowtide::driver
