// Problem: choose options of the inner blocks, if each of their halves runs once.
//
// Idea: by the price of a saved byte; see choice.cpp.
//
// Invariant: every option was simulated.
//
// Loses: if a forward half should run more than once.
#include "lowtide/solve/hierarchy/block/prices.h"

#include <set>

#include "lowtide/solve/hierarchy/block/choice.h"

namespace lowtide::solve::hierarchy {

namespace {

class Prices final : public BlockSolver {
 public:
  std::string_view name() const override { return "prices"; }
  std::string_view summary() const override {
    return "one price per saved byte selects an option of each inner block; fast up to a million "
           "ops";
  }
  bool is_quick_start() const override { return true; }
  Support supports(const BlockTask& task) const override {
    return task.level.children.empty() ? Support::no("no block is inside") : Support{};
  }
  std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const override {
    Choice choice(task, limits);
    std::vector<BlockOption> options;
    if (!choice.has_choice()) return options;
    std::set<std::vector<std::size_t>> chosen;  // the same choice for several budgets
    for (const BlockBudget& budget : task.budgets) {
      if (limits.stopped()) break;
      choice.run(budget);
      if (!choice.sequence().empty() && chosen.insert(choice.options()).second)
        options.push_back(task.block.price(choice.sequence()));
    }
    return options;
  }
};

}  // namespace

std::unique_ptr<BlockSolver> make_prices() { return std::make_unique<Prices>(); }

}  // namespace lowtide::solve::hierarchy
