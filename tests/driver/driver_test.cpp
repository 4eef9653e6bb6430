// The gate: what a caller brings along is kept, what a solver is told reaches it.
#include "lowtide/driver/driver.h"

#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"
#include "lowtide/sim/simulate.h"

#include "support/print.h"

namespace lowtide {
namespace {

class Idle final : public solve::Solver {
 public:
  std::string_view name() const override { return "idle"; }
  std::string_view summary() const override { return "finds nothing"; }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem&, solve::Context& context) const override {
    context.limits().spend(7);
    return context.finish();
  }
};

TEST_CASE("solve: a start plan within the budget is a plan of every solver") {
  const Graph graph = generate("chain", 20, 1);
  const Plan own = own_plan(graph);
  solve::SolverTable table;
  table.add(std::make_unique<Idle>());
  driver::Request request;
  request.solver = "idle";
  Plan part;
  part.steps = {Step::compute(OpId(0))};
  request.starts = {part, own};  // the first is no plan
  const driver::Answer fits = driver::solve(
      table, {.graph = graph, .budget = own_peak(graph), .order = Order::given}, request);
  CHECK(fits.outcome.status == Status::optimal);
  CHECK(fits.outcome.plan->steps == own.steps);
  CHECK(fits.work == 7);
  const driver::Answer beyond =
      driver::solve(table, {.graph = graph, .budget = own_peak(graph) - Bytes(1)}, request);
  CHECK_FALSE(beyond.outcome.plan.has_value());
  CHECK(beyond.outcome.smallest_peak == own_peak(graph));
}

// Looks for its engine for as long as it may.
class Looking final : public solve::Solver {
 public:
  std::string_view name() const override { return "looking"; }
  std::string_view summary() const override { return "never finds its engine"; }
  std::string missing(const std::function<bool()>& stop) const override {
    while (!stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return "patience";
  }
  solve::Support supports(const Problem&) const override { return {}; }
  Outcome solve(const Problem&, solve::Context& context) const override {
    context.limits().spend();
    return context.finish();
  }
};

TEST_CASE("solve: the time limit and a cancel include the search for an engine") {
  const Graph graph = generate("chain", 20, 1);
  solve::SolverTable table;
  table.add(std::make_unique<Looking>());
  driver::Request request;
  request.solver = "looking";
  request.limits.seconds = 0.05;
  const Problem problem{.graph = graph, .budget = own_peak(graph)};
  const driver::Answer late = driver::solve(table, problem, request);
  CHECK(late.support.yes);
  CHECK(late.outcome.stopped_by == StopReason::deadline);

  CancelToken cancel;
  request.limits = {.cancel = &cancel};
  std::jthread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancel.cancel();
  });
  CHECK(driver::solve(table, problem, request).outcome.stopped_by == StopReason::cancelled);
}

TEST_CASE("solve: known bounds reach the solver") {
  const Graph graph = generate("chain", 20, 1);
  solve::SolverTable table;
  table.add(std::make_unique<Idle>());
  driver::Request request;
  request.solver = "idle";
  request.known = {graph.total_time() + Ticks(5), own_peak(graph)};
  const Outcome outcome =
      driver::solve(table, {.graph = graph, .budget = own_peak(graph)}, request).outcome;
  CHECK(outcome.bound.duration == graph.total_time() + Ticks(5));
  CHECK(outcome.bound.peak == own_peak(graph));
  CHECK(outcome.status == Status::unknown);
}

TEST_CASE("solve: known bounds may solve the problem before a solver runs") {
  const Graph graph = generate("chain", 20, 1);
  driver::Request request;
  request.known.peak = Bytes(2);
  const Outcome outcome =
      driver::solve(driver::all_solvers(), {.graph = graph, .budget = Bytes(1)}, request).outcome;
  CHECK(outcome.status == Status::infeasible);
  CHECK(outcome.smallest_peak.has_value());
}

TEST_CASE("solve: a cancel ends auto under a limit of work too") {
  const Graph graph = generate("transformer", 200, 1);
  CancelToken cancel;
  driver::Request request;
  request.limits.work = 1'000'000'000;
  request.limits.cancel = &cancel;
  request.watcher = [&](const solve::Progress& progress) {
    if (progress.plan != nullptr) cancel.cancel();
  };
  const Problem problem{
      .graph = graph, .budget = Bytes(own_peak(graph).count() * 7 / 10), .order = Order::given};
  CHECK(driver::solve(driver::all_solvers(), problem, request).outcome.stopped_by ==
        StopReason::cancelled);
}

}  // namespace
}  // namespace lowtide
