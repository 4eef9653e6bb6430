// What Kumar et al. describe, on graphs small enough to follow by hand.
#include "lowtide/solve/greedy/greedy.h"

#include <doctest/doctest.h>

#include "lowtide/sim/budget.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/greedy/greedy_pass.h"

#include "solve/run_solver.h"
#include "solve/training_chain.h"
#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

constexpr std::string_view kPaper = "choice=bytes repeats=1 block=1";

std::string greedy(const Graph& graph, std::int64_t budget, Order order = Order::given,
                   std::string_view options = kPaper) {
  const Problem problem{.graph = graph, .budget = Bytes(budget), .order = order};
  return computes(run_solver(*solve::greedy::make_greedy(), problem, options));
}

TEST_CASE("greedy: an evicted tensor is recomputed right before its next use") {
  const Graph graph = Sketch({10, 1, 10, 1, 1})
                          .op({}, {0})
                          .op({0}, {1})
                          .op({1}, {2})
                          .op({2}, {3})
                          .op({0, 3}, {4})
                          .keep({4})
                          .graph();
  CHECK(greedy(graph, 21) == "0 1 2 3 4");
  CHECK(greedy(graph, 20) == "0 1 2 3 0 4");
  CHECK(greedy(graph, 11) == "none");
}

// Both candidates can go; the larger takes longer to make again.
Graph two_candidates() {
  return Sketch({8, 6, 10, 1, 1, 1})
      .op({}, {0}, 50)
      .op({}, {1}, 2)
      .op({}, {2})
      .op({2}, {3})
      .op({3, 0}, {4})
      .op({4, 1}, {5})
      .keep({5})
      .graph();
}

TEST_CASE("greedy: the paper chooses by bytes, XLA by bytes for time") {
  const Graph graph = two_candidates();
  CHECK(greedy(graph, 19) == "0 1 2 3 0 4 5");
  CHECK(greedy(graph, 19, Order::given, "choice=bytes_per_tick repeats=1 block=1") ==
        "0 1 2 3 4 1 5");
  CHECK(greedy(graph, 19, Order::given, "") == "0 1 2 3 4 1 5");
}

TEST_CASE("greedy: a freed operand is charged, and held from its free on") {
  // 1 is made from 0, which nothing else reads: giving 1 up brings 0 back.
  const auto with_operand = [](std::int64_t bytes) {
    return Sketch({bytes, 8, 10, 1, 1})
        .op({}, {0})
        .op({0}, {1})
        .op({}, {2})
        .op({2}, {3})
        .op({1, 3}, {4})
        .keep({4})
        .graph();
  };
  CHECK(greedy(with_operand(4), 17) == "0 1 2 3 1 4");
  CHECK(greedy(with_operand(8), 17) == "none");
  CHECK(greedy(with_operand(8), 17, Order::given, "block=2") == "0 1 2 3 0 1 4");
}

TEST_CASE("greedy: an output is recomputed at the end") {
  const Graph graph = Sketch({10, 10, 1}).op({}, {0}).op({}, {1}).op({1}, {2}).keep({0, 2}).graph();
  CHECK(greedy(graph, 19) == "0 1 2 0");
  // In free order that is a move: what nothing reads before it is repeated need not be made.
  CHECK(greedy(graph, 19, Order::free) == "1 2 0");
}

TEST_CASE("greedy: a small output that is needed soon does not hold a large one") {
  const Graph graph = Sketch({10, 1, 10, 1, 1})
                          .op({}, {0, 1})
                          .op({}, {2})
                          .op({2, 1}, {3})
                          .op({3, 0}, {4})
                          .keep({4})
                          .graph();
  CHECK(greedy(graph, 13) == "0 1 2 0 3");
}

TEST_CASE("greedy: tensors that are not recomputable stay") {
  const Graph once = Sketch({10, 10, 1, 1})
                         .op({}, {0})
                         .once()
                         .op({}, {1})
                         .op({1}, {2})
                         .op({2, 0}, {3})
                         .keep({3})
                         .graph();
  CHECK(greedy(once, 19) == "none");
}

TEST_CASE("greedy: a reader of a mutated tensor is recomputed only before the mutation") {
  const auto changed_by = [](std::size_t position) {
    // 0 is an input; op 0 reads it and makes 1, which is read last.
    Sketch sketch({1, 10, 10, 1, 1, 1});
    sketch.op({0}, {1}).op({}, {2});
    if (position == 2) sketch.op({0, 2}, {3}).mutates({0}).op({3, 1}, {4});
    if (position == 3) sketch.op({2}, {3}).op({3, 1}, {4}).op({0, 4}, {5}).mutates({0}).keep({5});
    return sketch.keep({4}).graph();
  };
  CHECK(greedy(changed_by(3), 20) == "0 1 2 0 3 4");
  CHECK(greedy(changed_by(2), 20) == "none");
}

TEST_CASE("greedy: the option limits recomputations of one op") {
  // 0 is read after each of two large tensors, and has no room beside either.
  const Graph graph = Sketch({5, 12, 1, 10, 2, 1})
                          .op({}, {0})
                          .op({}, {1})
                          .op({1}, {2})
                          .op({2, 0}, {3})
                          .op({3}, {4})
                          .op({4, 0}, {5})
                          .keep({5})
                          .graph();
  CHECK(greedy(graph, 16, Order::given, "repeats=2") == "0 1 2 0 3 4 0 5");
  CHECK(greedy(graph, 16, Order::given, "repeats=1") == "none");
}

TEST_CASE("greedy: a tensor that is recomputed later may be overwritten") {
  // For op 1 the second output of op 0 goes; op 0 is repeated for op 4, which reads the first as
  // well: so op 2 is the last to read that as it is.
  const Graph graph = Sketch({8, 8, 8, 8, 1, 1})
                          .op({}, {0, 1})
                          .op({}, {2})
                          .op({0}, {3})
                          .in_place({{0, 3}})
                          .op({2, 3}, {4})
                          .op({0, 1, 4}, {5})
                          .keep({5})
                          .graph();
  CHECK(greedy(graph, 20) == "0 1 2 3 0 4");
}

TEST_CASE("greedy: a sweep counts the bytes that its plan needs, in place and not") {
  Random random(1);
  std::size_t fewer = 0;
  for (int i = 0; i < samples(2000); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(40);
    settings.bytes = 4;
    settings.in_place = 0.8;
    const Graph graph = random_graph(random, settings);
    const Bytes own = own_peak(graph);
    for (const std::int64_t share : {90, 75, 60}) {
      Limits limits;
      solve::greedy::GreedyPass sweep(graph, graph.order(),
                                      {.limit = Bytes(own.count() * share / 100),
                                       .repeats = 1 + static_cast<std::uint32_t>(random.below(4)),
                                       .block = 1 + random.below(4)},
                                      limits);
      const auto sequence = sweep.run();
      REQUIRE(sequence);
      CHECK(sweep.peak() == simulate(graph, plan_from_sequence(graph, *sequence)).cost.peak);
      fewer += sweep.peak() < own ? 1 : 0;
    }
  }
  CHECK(fewer > 0);
}

TEST_CASE("greedy: loses on a chain, where every second tensor is pinned by the next") {
  const Graph graph = training_chain({.layers = 64});
  const Problem problem{.graph = graph, .budget = resolve_budget(parse_budget("20%"), graph)};
  const Outcome paper = run_solver(*solve::greedy::make_greedy(), problem, kPaper);
  CHECK_FALSE(paper.plan);
  CHECK(*paper.smallest_peak > Bytes(own_peak(graph).count() / 3));
}

TEST_CASE("greedy: also starts from the order of the best start plan") {
  // In its own order two large tensors meet; one after the other they do not.
  const Graph graph = Sketch({10, 10, 1, 1, 1})
                          .op({}, {0})
                          .once()
                          .op({}, {1})
                          .once()
                          .op({0}, {2})
                          .op({1}, {3})
                          .op({2, 3}, {4})
                          .keep({4})
                          .graph();
  const Problem problem{.graph = graph, .budget = Bytes(12)};
  CHECK_FALSE(run_solver(*solve::greedy::make_greedy(), problem).plan);
  solve::ContextSettings settings;
  const std::vector<OpId> order = {OpId(0), OpId(2), OpId(1), OpId(3), OpId(4)};
  settings.starts.push_back(plan_from_sequence(graph, order));
  CHECK(computes(run_solver(*solve::greedy::make_greedy(), problem, {}, settings)) == "0 2 1 3 4");
}

}  // namespace
}  // namespace lowtide
