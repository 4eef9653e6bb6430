// Problem: which solver for this graph, this budget and this order?
//
// Idea: none is best everywhere. phases.cpp is the table of what is done and when: the bounds and
// the constructive solvers take milliseconds and go first, one after the other, each from the best
// plan so far. Then come epochs, each twice as long as the one before. In an epoch the search
// anneals from the best plan in several lanes, by recipes (recipes.cpp) among which a bandit
// (choice.h) chooses by what each has won; the bounds get a part of the work. At the end of an
// epoch plans and bounds are exchanged. It ends when a plan is proven optimal, when the budget is
// proven infeasible, or at a limit; without any limit after a few epochs.
//
// With a free order, the first bounds are asked for the given one, and most lanes keep the
// order of the plan that they begin from, until those that change it win more.
//
// Without a clock an epoch has a fixed number of lanes and nothing is exchanged within it: the same
// seed gives the same answer, whatever the number of threads. Under a clock there is a lane for
// each thread, and plans are reported as soon as a lane finds them.
//
// Invariant: no solver that takes long keeps the others from their turn, and each epoch begins from
// the best plan of all before.
//
// Loses: against one solver alone that needs many epochs' work, since it begins anew in each.
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

// For each line of a table a switch and a number: "bounds" and "bounds-share".
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
  std::string_view kept(std::string text) { return texts_.emplace_back(std::move(text)); }

  void add(std::string_view name, std::string summary, std::string_view suffix,
           std::string_view number_usage, double number, double most) {
    specs_.push_back(solve::switch_option(name, kept(std::move(summary))));
    specs_.push_back({.name = kept(std::string(name) + std::string(suffix)),
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

template <class Lines>
std::vector<double> numbers(const solve::Options& options, const Lines& lines,
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
           {.phase_shares = numbers(options, phases(), "-share"),
            .recipe_weights = numbers(options, recipes(), "-weight"),
            .order_weights = numbers(options, order_recipes(), "-weight")})
        .run();
    if (!context.engine_believed())
      context.set_note(
          "a bound claimed by an engine or a registered solver was above a plan that verifies, and "
          "is left out");
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<solve::Solver> make_auto() { return std::make_unique<Auto>(); }

}  // namespace lowtide::driver
