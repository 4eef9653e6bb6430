// What Chen et al. promise for chains, and what comes of it elsewhere.
#include "lowtide/solve/sqrt/sqrt.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"
#include "lowtide/solve/greedy/greedy.h"

#include "solve/run_solver.h"
#include "solve/training_chain.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

Outcome solve(const Graph& graph, std::int64_t budget, std::string_view options = {}) {
  const Problem problem{.graph = graph, .budget = Bytes(budget), .order = Order::given};
  return run_solver(*solve::sqrt::make_sqrt(), problem, options);
}

TEST_CASE("sqrt: 2 sqrt(n) memory and one more forward on chains") {
  for (const std::size_t layers : {25u, 100u, 400u, 2500u}) {
    for (const bool barrier : {true, false}) {
      CAPTURE(layers);
      CAPTURE(barrier);
      const Graph graph = training_chain({.layers = layers, .barrier = barrier});
      const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(layers)));
      // The input, two gradients and the layer that is made stand beside segments and cuts.
      const Outcome outcome = solve(graph, 2 * root + 4, "cuts=single");
      REQUIRE(outcome.plan);
      std::vector<int> times(graph.op_count(), 0);
      for (OpId op : sequence_of(*outcome.plan)) ++times[op.index()];
      CHECK(*std::max_element(times.begin(), times.end()) == 2);
      CHECK(outcome.cost.duration <= graph.total_time() + Ticks(static_cast<std::int64_t>(layers)));
    }
  }
}

TEST_CASE("sqrt: segments are recomputed one by one, the last not at all") {
  // Eight layers, the barrier is op 8. Own peak: the input, eight layers and the tangent.
  const Graph graph = training_chain({.layers = 8});
  CHECK(own_peak(graph) == Bytes(10));
  CHECK(computes(solve(graph, 10)) == "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16");
  CHECK(computes(solve(graph, 9)) == "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 0 15 16");
  const Outcome outcome = solve(graph, 7);
  REQUIRE(outcome.plan);
  CHECK(outcome.cost.peak <= Bytes(7));
}

TEST_CASE("sqrt: a tensor beside the chain leaves no single cuts, yet narrow ones") {
  const Graph graph = training_chain({.layers = 100, .beside = true});
  const Outcome single = solve(graph, 30, "cuts=single");
  CHECK_FALSE(single.plan);
  CHECK(single.note.find("no single tensor") != std::string::npos);
  const Outcome narrow = solve(graph, 30, "cuts=narrow");
  REQUIRE(narrow.plan);
  CHECK(narrow.cost.duration <= graph.total_time() + Ticks(101));
}

TEST_CASE("sqrt: tensors that are not recomputable are kept and reused") {
  // Forward: 1, 2 (once), 3, 4, 5; backward reads 1, 2 and 3 late.
  const Graph graph = Sketch({0, 4, 4, 4, 4, 1, 1, 1, 1, 1})
                          .op({0}, {1})
                          .op({1}, {2})
                          .once()
                          .op({2}, {3})
                          .op({3}, {4})
                          .op({4}, {5})
                          .op({5}, {6})
                          .barrier()
                          .op({6, 4}, {7})
                          .op({7, 3}, {8})
                          .op({8, 2, 1}, {9})
                          .keep({9})
                          .graph();
  CHECK(own_peak(graph) == Bytes(18));
  const Outcome outcome = solve(graph, 14);
  REQUIRE(outcome.plan);
  const auto sequence = sequence_of(*outcome.plan);
  CHECK(std::count(sequence.begin(), sequence.end(), OpId(1)) == 1);
}

TEST_CASE("sqrt: loses where the forward reads its own first half again") {
  const Graph graph = training_chain({.layers = 100, .mirrored = true});
  const auto budget = own_peak(graph).count() * 6 / 10;
  const Problem problem{.graph = graph, .budget = Bytes(budget), .order = Order::given};
  CHECK_FALSE(run_solver(*solve::sqrt::make_sqrt(), problem).plan);
  CHECK(run_solver(*solve::greedy::make_greedy(), problem).plan);
}

TEST_CASE("sqrt: a graph without a backward is unchanged") {
  const Graph graph = Sketch({1, 1, 1}).op({0}, {1}).op({1}, {2}).keep({2}).graph();
  CHECK(computes(solve(graph, 3)) == "0 1");
}

}  // namespace
}  // namespace lowtide
