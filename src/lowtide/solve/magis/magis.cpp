#include "lowtide/solve/magis/magis.h"

#include <array>

#include "lowtide/solve/magis/search.h"

namespace lowtide::solve::magis {

namespace {

const std::array<OptionSpec, 8>& specs() {
  static const std::array<OptionSpec, 8> table = {{
      {.name = "delta",
       .usage = "a state is kept if both its figures, this many times smaller, are no worse than "
                "the best",
       .default_number = 1.1,
       .low = 1,
       .high = 4},
      {.name = "levels",
       .usage = "levels of the F-Tree",
       .default_number = 4,
       .low = 1,
       .high = 32,
       .whole = true},
      {.name = "patience",
       .usage = "ends after so many expansions for each op of the graph without a better state",
       .default_number = 2,
       .low = 0,
       .high = 50},
      {.name = "enable",
       .usage = "which nodes of the F-Tree may be enabled: leaves and parents of enabled ones, as "
                "in the paper, or any",
       .default_choice = "any",
       .choices = {"any", "leaves"}},
      switch_option("rollout",
                    "from each state, rules one after the other as long as they lower the peak"),
      switch_option("spread", "every second state expanded is one of the fission least looked at"),
      switch_option("chains", "what an op that runs again reads and is not there runs again, too"),
      switch_option("reorder", "orders blocks between narrow waists anew, where the order is free"),
  }};
  return table;
}

class Magis final : public Solver {
 public:
  std::string_view name() const override { return "magis"; }
  std::string_view summary() const override {
    return "MAGIS: best-first over splits, recomputation and swapping, priced before they are made";
  }
  Traits traits() const override { return {Trait::transforms}; }
  std::span<const OptionSpec> options() const override { return specs(); }
  Support supports(const Problem&) const override { return {}; }

  Outcome solve(const Problem& problem, Context& context) const override {
    Search(problem, context).run();
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_magis() { return std::make_unique<Magis>(); }

}  // namespace lowtide::solve::magis
