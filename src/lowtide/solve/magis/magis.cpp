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
       .usage = "most levels of the F-Tree",
       .default_number = 4,
       .low = 1,
       .high = 32,
       .whole = true},
      {.name = "patience",
       .usage = "stop after this many expansions per op of the graph without a better state",
       .default_number = 2,
       .low = 0,
       .high = 50},
      {.name = "enable",
       .usage = "F-Tree nodes that may be enabled: any, or, as in the paper, leaves and parents of "
                "enabled nodes",
       .default_choice = "any",
       .choices = {"any", "leaves"}},
      switch_option("rollout",
                    "from each state, apply rules one after the other while the peak falls"),
      switch_option("spread",
                    "expand, every second time, a state of the fission that was expanded least"),
      switch_option("chains",
                    "a recomputed op also recomputes those of its inputs that were freed"),
      switch_option("reorder", "free order only: reorder the ops between narrow cuts"),
  }};
  return table;
}

class Magis final : public Solver {
 public:
  std::string_view name() const override { return "magis"; }
  std::string_view summary() const override {
    return "MAGIS: best-first search over splits, recomputation and swaps, each priced before it "
           "is applied";
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
