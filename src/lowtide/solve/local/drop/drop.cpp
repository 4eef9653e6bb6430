// Problem: an order is far over the budget. Find a plan within milliseconds.
//
// Idea: keep the order, and evict tensors over retention gaps, by recomputation or swap. The gap
// with the lowest cost per byte comes first (local/common/drop_gaps.cpp).
//
// Invariant: the first computations keep the given order, or that of a start plan.
//
// Loses: if another order needs less memory; mirror tries some.
#include "lowtide/solve/local/drop/drop.h"

#include "lowtide/solve/interface/starts.h"
#include "lowtide/solve/local/common/drop_gaps.h"

namespace lowtide::solve::local::drop {

namespace {

class Drop final : public Solver {
 public:
  std::string_view name() const override { return "drop"; }
  std::string_view summary() const override {
    return "greedy: evicts the retention gap with the lowest cost per byte (lazy greedy), by "
           "recomputation or swap";
  }
  Traits traits() const override { return {Trait::constructive, Trait::tight}; }
  Support supports(const Problem& problem) const override { return supports_dropping(problem); }

  Outcome solve(const Problem& problem, Context& context) const override {
    context.offer_events(own_events(problem.graph));
    if (!context.done()) drop_gaps(orders_to_try(context), context);
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_drop() { return std::make_unique<Drop>(); }

}  // namespace lowtide::solve::local::drop
