// Problem: use a solver of graphs as a block solver.
//
// Idea: a block is a graph (BlockProblem), and a limit on its saved bytes is workspace of the
// barrier between its halves. So the solver is called for each budget; the computations of its plan
// before and after the barrier are an option. Inner blocks are ignored.
//
// Invariant: every option is a plan of the block's graph.
//
// Loses: on large blocks, whose graph is solved again for each budget.
#include "lowtide/solve/hierarchy/block/flat.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::solve::hierarchy {

namespace {

struct Kind {
  std::string_view name, solver, summary;
  bool slow;
  bool any_peak;  // only the saved bytes are limited
  std::vector<std::pair<std::string_view, std::string_view>> options;
};

const std::array<Kind, 3>& kinds() {
  static const std::array<Kind, 3> table = {{
      {"cut",
       "bounds",
       "minimum cuts select the saved tensors; the others are recomputed when needed",
       false,
       true,
       {{"gaps", "off"}, {"branching", "off"}, {"windows", "off"}, {"stages", "off"}}},
      {"search",
       "search",
       "local search over sequences of ops, from the options found so far",
       true,
       false,
       {{"rounds", "2"}}},
      {"twremat",
       "twremat",
       "Kumar et al.: recursive recomputation between balanced separators, in little memory",
       true,
       false,
       {}},
  }};
  return table;
}

class Flat final : public BlockSolver {
 public:
  explicit Flat(const Kind& kind) : kind_(kind) {}
  std::string_view name() const override { return kind_.name; }
  std::string_view summary() const override { return kind_.summary; }
  bool is_slow() const override { return kind_.slow; }

  Support supports(const BlockTask& task) const override {
    const Solver* solver = task.solvers == nullptr ? nullptr : task.solvers->find(kind_.solver);
    if (solver == nullptr) return Support::no("there is no such solver here");
    std::optional<Graph> limited;
    return solver->supports(task.block.problem({Bytes::max(), Bytes::max()}, limited));
  }

  std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const override {
    const Solver& solver = *task.solvers->find(kind_.solver);
    std::vector<BlockOption> options;
    const std::vector<BlockBudget> budgets = budgets_of(task);
    const std::vector<Plan> starts = starts_of(task);
    std::optional<Graph> limited;
    for (std::size_t i = 0; i < budgets.size() && !limits.stopped(); ++i) {
      const Problem problem = task.block.problem(budgets[i], limited);
      const double share = 1.0 / static_cast<double>(budgets.size() - i);
      ContextSettings settings{.limits = limits.remaining(share),
                               .seed = task.seed + i,
                               .options = Options(solver.options()),
                               .starts = starts,
                               .known = {},
                               .solvers = task.solvers,
                               .watcher = {}};
      for (const auto& [name, value] : kind_.options) settings.options.set(name, value);
      Context context(problem, solver.name(), std::move(settings));
      const Outcome outcome = solver.solve(problem, context);
      limits.spend_all(context.limits().work());
      if (const Plan* plan = outcome.plan         ? &*outcome.plan
                             : context.smallest() ? &*context.smallest()
                                                  : nullptr)
        options.push_back(task.block.price(sequence_of(*plan)));
    }
    return options;
  }

 private:
  std::vector<BlockBudget> budgets_of(const BlockTask& task) const {
    std::vector<BlockBudget> budgets(task.budgets.begin(), task.budgets.end());
    if (!kind_.any_peak || !task.block.has_backward()) return budgets;
    Bytes highest;
    for (const BlockBudget& budget : budgets) highest = std::max(highest, budget.peak);
    for (const BlockOption& option : task.known) highest = std::max(highest, option.peak());
    for (BlockBudget& budget : budgets) budget.peak = highest + highest;
    std::ranges::sort(budgets);
    budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
    return budgets;
  }

  std::vector<Plan> starts_of(const BlockTask& task) const {
    std::vector<Plan> starts;
    if (kind_.any_peak) return starts;  // a plan without a peak limit keeps the budget anyway
    for (const BlockOption& option : task.known) {
      std::vector<OpId> sequence = option.forward;
      if (task.block.has_backward()) sequence.push_back(task.block.rest());
      sequence.insert(sequence.end(), option.backward.begin(), option.backward.end());
      starts.push_back(plan_from_sequence(task.block.graph(), sequence));
    }
    return starts;
  }

  const Kind& kind_;
};

}  // namespace

std::vector<std::unique_ptr<BlockSolver>> make_flat() {
  std::vector<std::unique_ptr<BlockSolver>> all;
  for (const Kind& kind : kinds()) all.push_back(std::make_unique<Flat>(kind));
  return all;
}

}  // namespace lowtide::solve::hierarchy
