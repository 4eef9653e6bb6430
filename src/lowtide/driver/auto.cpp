// Problem: which solver for this graph and budget?
//
// Idea: none is best everywhere, and the constructive ones take milliseconds, so run them all from
// the cheapest to the dearest and keep the best plan. What one finds is a start for the next: with a
// free order, the orders that `order` finds carry the evictions of `evict`. Stops as soon as a plan
// is proven optimal or the budget proven infeasible.
//
// Invariant: never worse than any of its parts at the same limits.
//
// Loses: against one part alone when the limit is shorter than the parts before it take.
#include "lowtide/driver/auto.h"

#include <array>
#include <utility>

namespace lowtide {

namespace {

constexpr std::array<std::string_view, 5> kParts = {"given", "order", "evict", "sqrt", "greedy"};

class Auto final : public Solver {
 public:
  std::string_view name() const override { return "auto"; }
  std::string_view summary() const override {
    return "all of the above, the cheapest first, each from the best so far; the default";
  }
  Support supports(const Problem& problem) const override {
    if (problem.objective != Objective::least_time)
      return Support::no("it fits a plan into a budget and cannot minimise memory");
    return {};
  }

  Outcome solve(const Problem& problem, Context& context) const override {
    std::vector<Plan> starts(context.starts().begin(), context.starts().end());
    for (std::string_view name : kParts) {
      // Even a hopeless budget gets an answer with the smallest peak seen.
      if (context.done() && context.smallest()) break;
      const Solver* part = context.solvers() ? context.solvers()->find(name) : nullptr;
      if (part == nullptr || !part->supports(problem).yes) continue;
      run_part(*part, problem, context, starts);
    }
    return context.finish();
  }

 private:
  static void run_part(const Solver& part, const Problem& problem, Context& context,
                       std::vector<Plan>& starts) {
    ContextSettings settings{.limits = context.limits().remaining(),
                             .seed = context.seed(),
                             .threads = context.threads(),
                             .options = Options(part.options()),
                             .starts = starts,
                             .solvers = context.solvers(),
                             .watcher = {}};
    settings.watcher = [&](const Progress& progress) {
      if (progress.plan != nullptr) context.offer(*progress.plan, part.name());
    };
    Context inner(problem, part.name(), std::move(settings));
    const Outcome outcome = part.solve(problem, inner);
    context.limits().spend(inner.limits().work());
    context.raise_bound(outcome.bound.duration);
    context.raise_floor(outcome.bound.peak);
    if (!inner.smallest()) return;
    context.offer(*inner.smallest(), part.name());
    // A part that found a plan hands on the best, another the one nearest to the budget.
    starts.insert(starts.begin(), outcome.plan ? *outcome.plan : *inner.smallest());
  }
};

}  // namespace

std::unique_ptr<Solver> make_auto() { return std::make_unique<Auto>(); }

}  // namespace lowtide
