// The gate: what a caller brings along is kept, what a solver is told reaches it.
#include "lowtide/driver/driver.h"

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"

#include "support/print.h"

namespace lowtide {
namespace {

class Idle final : public Solver {
 public:
  std::string_view name() const override { return "idle"; }
  std::string_view summary() const override { return "finds nothing"; }
  Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem&, Context& context) const override {
    context.limits().spend(7);
    return context.finish();
  }
};

TEST_CASE("solve: a start is an answer, whatever the solver makes of it") {
  const Graph graph = generate("chain", 20, 1);
  const Plan own = own_plan(graph);
  SolverTable table;
  table.add(std::make_unique<Idle>());
  Request request;
  request.solver = "idle";
  request.starts = {Plan{{Step::compute(OpId(0))}, std::nullopt}, own};  // the first is no plan
  const Answer fits =
      solve(table, {.graph = graph, .budget = own_peak(graph), .order = Order::given}, request);
  CHECK(fits.outcome.status == Status::optimal);
  CHECK(fits.outcome.plan->steps == own.steps);
  CHECK(fits.work == 7);
  const Answer beyond =
      solve(table, {.graph = graph, .budget = own_peak(graph) - Bytes(1)}, request);
  CHECK_FALSE(beyond.outcome.plan.has_value());
  CHECK(beyond.outcome.smallest_peak == own_peak(graph));
}

TEST_CASE("solve: what is known of the problem reaches the solver") {
  const Graph graph = generate("chain", 20, 1);
  SolverTable table;
  table.add(std::make_unique<Idle>());
  Request request;
  request.solver = "idle";
  request.known = {graph.total_time() + Ticks(5), own_peak(graph)};
  const Outcome outcome =
      solve(table, {.graph = graph, .budget = own_peak(graph)}, request).outcome;
  CHECK(outcome.bound.duration == graph.total_time() + Ticks(5));
  CHECK(outcome.bound.peak == own_peak(graph));
  CHECK(outcome.status == Status::unknown);
}

}  // namespace
}  // namespace lowtide
