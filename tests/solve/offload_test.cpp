// Greedy swapping: what it chooses by hand, host budgets, tensors at home on the host, starts.
#include "lowtide/solve/offload/offload.h"

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"

#include "solve/run_solver.h"
#include "support/print.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

// A training chain: what three ops make comes back for three others, with long ops in between.
Graph chain() {
  return Sketch({8, 8, 8, 8, 1, 1, 1})
      .op({}, {0}, 20)
      .op({0}, {1}, 20)
      .op({1}, {2}, 20)
      .op({2}, {3}, 20)
      .op({3, 2}, {4}, 20)
      .op({4, 1}, {5}, 20)
      .op({5, 0}, {6}, 20)
      .keep({6})
      .graph();
}

TEST_CASE("offload: swaps without a stall if the link allows it") {
  const auto solver = solve::offload::make_offload();
  const Graph graph = chain();
  CHECK_FALSE(solver->supports({.graph = graph, .budget = Bytes(0)}).yes);
  const Bytes own = own_peak(graph);
  CHECK(own == Bytes(33));
  Problem problem{.graph = graph, .budget = Bytes(25), .machine = machine_by_hand()};
  const Outcome outcome = run_solver(*solver, problem);
  CHECK(outcome.status == Status::optimal);
  REQUIRE(outcome.plan);
  CHECK(transfers(*outcome.plan));
  CHECK(outcome.cost.host_peak == Bytes(8));
  // Two must leave; the host has room for one.
  problem.budget = Bytes(17);
  CHECK(run_solver(*solver, problem).plan);
  problem.host_budget = Bytes(15);
  CHECK_FALSE(run_solver(*solver, problem).plan);
  problem.host_budget = Bytes(16);
  CHECK(run_solver(*solver, problem).plan);
}

TEST_CASE("offload: refuses transfer times beyond the exact range") {
  const auto solver = solve::offload::make_offload();
  const Graph graph = chain();
  Machine slow = machine_by_hand();
  slow.device_to_host = {Ticks(0), Bytes(1), Ticks(std::int64_t{1} << 61)};
  Problem problem{.graph = graph, .budget = Bytes(17), .machine = slow};
  CHECK(solver->supports(problem).reason.find("copies") != std::string::npos);
  problem.machine->device_to_host = {Ticks(std::int64_t{1} << 62), Bytes(1), Ticks(0)};
  CHECK_FALSE(solver->supports(problem).yes);
  problem.machine->device_to_host.latency = Ticks(std::int64_t{1} << 44);
  CHECK(run_solver(*solver, problem).plan);
}

TEST_CASE("offload: a graph within the budget is not changed") {
  const Graph graph = chain();
  const Outcome outcome =
      run_solver(*solve::offload::make_offload(),
                 {.graph = graph, .budget = own_peak(graph), .machine = machine_by_hand()});
  CHECK(outcome.status == Status::optimal);
  CHECK_FALSE(transfers(*outcome.plan));
}

TEST_CASE("offload: held inputs stay, releasable inputs are not fetched back") {
  // Both inputs are read at the start alone; one must be there at the end.
  const auto graph = [](bool stays) {
    Sketch sketch({20, 20, 1, 20, 1});
    sketch.op({0, 1}, {2}, 50).op({2}, {3}, 50).op({3}, {4}, 50).releasable({0}).keep({4});
    if (stays) sketch.stays({1});
    return sketch.graph();
  };
  const auto solver = solve::offload::make_offload();
  const Graph free = graph(false), held = graph(true);
  Problem problem{.graph = free, .budget = Bytes(41), .machine = machine_by_hand()};
  CHECK_FALSE(transfers(*run_solver(*solver, problem).plan));
  // Needs one of them at the end.
  const Problem held_problem{.graph = held, .budget = Bytes(41), .machine = machine_by_hand()};
  CHECK_FALSE(transfers(*run_solver(*solver, held_problem).plan));
}

TEST_CASE("offload: tensors at home on the host are fetched when needed") {
  const Graph graph =
      Sketch({8, 8, 4, 4}).on_host({0, 1}).op({0}, {2}, 30).op({1, 2}, {3}, 30).keep({3}).graph();
  Problem problem{.graph = graph, .budget = Bytes(24), .machine = machine_by_hand()};
  const Outcome roomy = run_solver(*solve::offload::make_offload(), problem);
  REQUIRE(roomy.plan);
  // The second comes while the first is used.
  CHECK(roomy.cost.duration == Ticks(5 + 30 + 30));
  problem.budget = Bytes(16);
  const Outcome tight = run_solver(*solve::offload::make_offload(), problem);
  REQUIRE(tight.plan);
  CHECK(tight.cost.duration == Ticks(5 + 30 + 5 + 30));
}

TEST_CASE("offload: starts from the computations of its start plans") {
  const Graph graph = chain();
  Problem problem{.graph = graph, .budget = Bytes(18), .machine = machine_by_hand()};
  problem.machine->device_to_host.latency = Ticks(1000);
  // The first op again: nothing of it needs to leave.
  const std::vector<OpId> again = {OpId(0), OpId(1), OpId(2), OpId(3),
                                   OpId(4), OpId(5), OpId(0), OpId(6)};
  solve::ContextSettings settings;
  settings.starts = {plan_from_sequence(graph, again)};
  const auto solver = solve::offload::make_offload();
  const Outcome alone = run_solver(*solver, problem);
  const Outcome from = run_solver(*solver, problem, {}, settings);
  REQUIRE(from.plan);
  REQUIRE(alone.plan);
  CHECK(from.cost.duration <= alone.cost.duration);
}

}  // namespace
}  // namespace lowtide
