// Problem: which solver for this graph and budget?
//
// Idea: none is best everywhere, and the constructive ones take milliseconds, so run them all from
// the cheapest to the dearest and keep the best plan. What one finds is a start for the next: with
// a free order, the orders that `order` finds carry the evictions of `evict`. A part gets a slice
// of work; whoever uses it up begins again with a larger one when all have had their turn, against
// what has been found by then. Stops as soon as a plan is proven optimal or the budget proven
// infeasible.
//
// Invariant: limits only cut the run short, so more of them never makes the answer worse; and no
// part that takes long keeps the others from their turn.
//
// Loses: against one part alone that needs many slices, since it begins anew with each.
#include "lowtide/driver/auto.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace lowtide {

namespace {

constexpr std::array<std::string_view, 5> kParts = {"given", "order", "evict", "sqrt", "greedy"};

class Auto final : public Solver {
 public:
  std::string_view name() const override { return "auto"; }
  std::string_view summary() const override {
    return "all of the above, the cheapest first, each from the best so far; the default";
  }
  Support supports(const Problem& problem) const override { return least_time_only(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    // The caller's starts; before them, once there is one, the best plan so far.
    std::vector<Plan> starts(context.starts().begin(), context.starts().end());
    std::vector<const Solver*> parts;
    for (std::string_view name : kParts) {
      const Solver* part = context.solvers() ? context.solvers()->find(name) : nullptr;
      if (part != nullptr && part->supports(problem).yes) parts.push_back(part);
    }
    for (std::int64_t slice = first_slice(problem.graph); !parts.empty(); slice *= kGrowth) {
      std::vector<const Solver*> unfinished;
      for (const Solver* part : parts) {
        // Even a hopeless budget gets an answer with the smallest peak seen.
        if (context.done() && context.smallest()) return context.finish();
        const bool first = !context.smallest();
        if (!run_part(*part, problem, context, starts, slice)) unfinished.push_back(part);
        if (!context.smallest()) continue;
        if (first) starts.emplace(starts.begin());
        starts.front() = context.has_plan() ? context.best() : *context.smallest();
      }
      parts = std::move(unfinished);
      // So that a clock which its part saw run out is seen here too.
      context.limits().spend(Limits::kPollWork);
    }
    return context.finish();
  }

 private:
  static constexpr std::int64_t kGrowth = 4;
  // With it nearly everything comes to its end on graphs of up to some thousand ops.
  static std::int64_t first_slice(const Graph& graph) {
    return 500'000 + 10 * static_cast<std::int64_t>(graph.op_count());
  }

  // Says whether it came to its end.
  static bool run_part(const Solver& part, const Problem& problem, Context& context,
                       const std::vector<Plan>& starts, std::int64_t slice) {
    LimitSettings limits = context.limits().remaining();
    limits.work = std::min(limits.work.value_or(slice), slice);
    ContextSettings settings{.limits = limits,
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
    const bool finished = outcome.stopped_by == StopReason::finished;
    if (!inner.smallest()) return finished;
    // What the watcher has handed on need not be priced again.
    if (!context.smallest_peak() || *inner.smallest_peak() < *context.smallest_peak())
      context.offer(*inner.smallest(), part.name());
    return finished;
  }
};

}  // namespace

std::unique_ptr<Solver> make_auto() { return std::make_unique<Auto>(); }

}  // namespace lowtide
