// Problem: choose options of the inner blocks, and the forward halves to recompute.
//
// Idea: with one fixed option for each inner block, a level is an ordinary graph, smaller by a
// factor of ten or more than its ops. So solvers of graphs plan it: `evict` makes a first plan, and
// `search` improves it. The options are chosen by prices for several budgets, from the real budget
// up to the need of the fastest options: the larger that budget, the more is left to recomputing
// halves. The most promising of these choices gets most of the work.
//
// Invariant: every option was priced on the block's own graph.
//
// Loses: a half has the same option each time it runs.
#include "lowtide/solve/hierarchy/block/contracted.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "lowtide/sim/simulate.h"
#include "lowtide/solve/hierarchy/block/choice.h"
#include "lowtide/solve/hierarchy/block/contraction.h"

namespace lowtide::solve::hierarchy {

namespace {

// Budgets of the choice: positions between the real budget and the need of the fastest options.
constexpr std::array kLooser = {0.0, 0.15, 0.4, 1.0};
constexpr double kTrials = 0.4;  // of the work

class Contracted final : public BlockSolver {
 public:
  std::string_view name() const override { return "contracted"; }
  std::string_view summary() const override {
    return "local search, with each half of an inner block contracted to one op";
  }
  bool is_slow() const override { return true; }
  Support supports(const BlockTask& task) const override {
    if (task.level.children.empty()) return Support::no("no block is inside");
    if (task.block.has_backward()) return Support::no("what it saves cannot be limited");
    if (task.solvers == nullptr || task.solvers->find("search") == nullptr ||
        task.solvers->find("evict") == nullptr)
      return Support::no("there is no search here");
    return {};
  }

  std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const override {
    std::vector<BlockOption> options;
    for (std::size_t i = 0; i < task.budgets.size() && !limits.stopped(); ++i) {
      Limits inner(limits.remaining(1.0 / static_cast<double>(task.budgets.size() - i)));
      if (auto sequence = solve_one(task, task.budgets[i], inner))
        options.push_back(task.block.price(*sequence));
      limits.spend_all(inner.work());
    }
    return options;
  }

 private:
  struct Trial {
    std::unique_ptr<Contraction> contraction;
    std::optional<Plan> plan;
    Cost cost{Ticks::max(), Bytes::max(), {}};
  };

  static std::optional<std::vector<OpId>> solve_one(const BlockTask& task,
                                                    const BlockBudget& budget, Limits& limits) {
    const Bytes most = highest(task, limits);
    std::vector<Trial> trials;
    std::vector<std::vector<std::size_t>> tried;
    for (std::size_t i = 0; i < kLooser.size() && !limits.stopped(); ++i) {
      Choice choice(task, limits);
      const auto more = static_cast<std::int64_t>(
          kLooser[i] * static_cast<double>(std::max(Bytes(), most - budget.peak).count()));
      choice.run({budget.peak + Bytes(more), budget.saved});
      if (choice.sequence().empty()) break;
      if (std::ranges::find(tried, choice.options()) != tried.end()) continue;
      tried.push_back(choice.options());
      Trial trial;
      trial.contraction = std::make_unique<Contraction>(task, choice.options());
      const double share = kTrials / static_cast<double>(kLooser.size() - i);
      run(task, budget, "evict", limits, share / 4, trial);
      run(task, budget, "search", limits, share, trial);
      trials.push_back(std::move(trial));
    }
    if (trials.empty()) return std::nullopt;
    Trial& best = *std::ranges::min_element(trials, {}, [](const Trial& trial) {
      return std::pair(trial.cost.duration, trial.cost.peak);
    });
    run(task, budget, "search", limits, 1, best);
    if (!best.plan) return std::nullopt;
    return best.contraction->spelled_out(sequence_of(*best.plan));
  }

  // The need of computing everything once.
  static Bytes highest(const BlockTask& task, Limits& limits) {
    Choice choice(task, limits);
    choice.run({Bytes::max(), Bytes::max()});
    const Timeline timeline =
        simulate(task.block.graph(), plan_from_sequence(task.block.graph(), choice.sequence()));
    return timeline.cost.peak;
  }

  static void run(const BlockTask& task, const BlockBudget& budget, std::string_view name,
                  Limits& limits, double share, Trial& trial) {
    const Graph& graph = trial.contraction->graph();
    std::optional<Graph> limited;
    const Problem problem{.graph = graph,
                          .budget = task.block.problem({budget.peak, Bytes::max()}, limited).budget,
                          .order = Order::given};
    const Solver& solver = *task.solvers->find(name);
    ContextSettings settings{.limits = limits.remaining(share),
                             .seed = task.seed,
                             .options = Options(solver.options()),
                             .starts = {},
                             .known = {},
                             .solvers = task.solvers,
                             .watcher = {}};
    if (trial.plan) settings.starts.push_back(*trial.plan);
    Context context(problem, name, std::move(settings));
    const Outcome outcome = solver.solve(problem, context);
    limits.spend_all(context.limits().work());
    if (outcome.plan && outcome.cost.duration < trial.cost.duration) {
      trial.plan = outcome.plan;
      trial.cost = outcome.cost;
    } else if (trial.cost.duration == Ticks::max() && context.smallest()) {
      trial.plan = context.smallest();
      trial.cost.peak = *context.smallest_peak();
    }
  }
};

}  // namespace

std::unique_ptr<BlockSolver> make_contracted() { return std::make_unique<Contracted>(); }

}  // namespace lowtide::solve::hierarchy
