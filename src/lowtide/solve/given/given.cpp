// Problem: the unplanned step, to which overheads and shares of the peak refer.
//
// Idea: compute every op once in the given order and free each tensor after its last use, as a
// framework without planning does (the NoRemat baseline of Kumar et al., NeurIPS 2019).
//
// Invariant: the plan's duration is the bound, so a plan within the budget is optimal.
//
// Loses: whenever the budget is below the baseline peak, it has no plan.
#include "lowtide/solve/given/given.h"

namespace lowtide::solve::given {

namespace {

class Given final : public Solver {
 public:
  std::string_view name() const override { return "given"; }
  std::string_view summary() const override {
    return "the given order, each tensor freed after its last use; no recomputation";
  }
  Traits traits() const override { return {Trait::constructive, Trait::transfers}; }
  Support supports(const Problem&) const override { return {}; }

  Outcome solve(const Problem& problem, Context& context) const override {
    context.offer_events(own_events(problem.graph));
    context.limits().spend(static_cast<std::int64_t>(problem.graph.op_count()));
    return context.finish();
  }
};

}  // namespace

std::unique_ptr<Solver> make_given() { return std::make_unique<Given>(); }

}  // namespace lowtide::solve::given
