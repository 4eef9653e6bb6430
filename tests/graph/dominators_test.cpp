#include "lowtide/graph/dominators.h"

#include <doctest/doctest.h>

#include "graph/closure.h"
#include "graph/shapes.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {

namespace {

// by[a][b]: a is b, or without a nothing leads from a source to b.
Closure dominated(const Graph& graph) {
  const std::size_t n = graph.op_count();
  Closure by(n, std::vector<bool>(n, false));
  for (std::size_t a = 0; a < n; ++a) {
    std::vector<bool> led(n, false);
    for (OpId op : graph.order()) {
      if (op.index() == a) continue;
      led[op.index()] = graph.predecessors(op).empty();
      for (OpId before : graph.predecessors(op))
        if (led[before.index()]) led[op.index()] = true;
    }
    for (std::size_t b = 0; b < n; ++b) by[a][b] = !led[b];
  }
  return by;
}

Closure post_dominated(const Graph& graph) {
  const std::size_t n = graph.op_count();
  Closure by(n, std::vector<bool>(n, false));
  for (std::size_t a = 0; a < n; ++a) {
    std::vector<bool> led(n, false);
    for (std::size_t k = n; k-- > 0;) {
      const OpId op = graph.order()[k];
      if (op.index() == a) continue;
      led[op.index()] = graph.successors(op).empty();
      for (OpId next : graph.successors(op))
        if (led[next.index()]) led[op.index()] = true;
    }
    for (std::size_t b = 0; b < n; ++b) by[a][b] = !led[b];
  }
  return by;
}

void check_tree(const DominatorTree& tree, const Closure& by) {
  const std::size_t n = by.size();
  std::vector<std::int32_t> count(n, 0);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) count[b] += by[a][b] ? 1 : 0;
  for (std::size_t b = 0; b < n; ++b) {
    REQUIRE(tree.depth(OpId(b)) == count[b]);
    const OpId parent = tree.parent(OpId(b));
    REQUIRE(parent.valid() == (count[b] > 1));
    // Dominators are nested, so the nearest is the strict one that has the most itself.
    if (parent.valid()) {
      REQUIRE(by[parent.index()][b]);
      REQUIRE(count[parent.index()] == count[b] - 1);
    }
    for (std::size_t a = 0; a < n; ++a) {
      REQUIRE(tree.dominates(OpId(a), OpId(b)) == by[a][b]);
      OpId common;
      for (std::size_t c = 0; c < n; ++c)
        if (by[c][a] && by[c][b] && (!common.valid() || count[c] > count[common.index()]))
          common = OpId(c);
      REQUIRE(tree.common(OpId(a), OpId(b)) == common);
    }
  }
}

}  // namespace

TEST_CASE("dominators agree with their definition on random graphs") {
  Random random(1);
  for (int i = 0; i < 1500 * test_scale(); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(18);
    settings.window = 1 + random.below(5);
    settings.reads = 1 + random.below(3);
    const Graph graph = random_graph(random, settings);
    check_tree(dominators(graph), dominated(graph));
    check_tree(post_dominators(graph), post_dominated(graph));
  }
}

TEST_CASE("dominators among some ops are those of the graph without the others") {
  Random random(3);
  for (int i = 0; i < 500 * test_scale(); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(18);
    const Graph graph = random_graph(random, settings);
    std::vector<std::uint8_t> among(graph.op_count(), 0);
    for (auto& one : among) one = random.chance(0.7) ? 1 : 0;
    const DominatorTree tree = dominators(graph, among);
    // Without a, is there a way to b from an op that nothing of them comes before?
    for (const OpId a : graph.order()) {
      std::vector<bool> led(graph.op_count(), false);
      for (const OpId b : graph.order()) {
        if (among[a.index()] == 0 || among[b.index()] == 0) continue;
        bool first = true;
        for (const OpId before : graph.predecessors(b)) {
          if (among[before.index()] == 0) continue;
          first = false;
          if (led[before.index()]) led[b.index()] = true;
        }
        if (first) led[b.index()] = true;
        if (b == a) led[b.index()] = false;
        REQUIRE(tree.dominates(a, b) == !led[b.index()]);
      }
    }
  }
}

TEST_CASE("dominators of a chain and a ladder of 200,000 ops") {
  const auto n = static_cast<std::size_t>(sanitized(20'000, 200'000));
  for (const Graph& graph : {chain_graph(n), ladder_graph(n / 2)}) {
    const DominatorTree tree = dominators(graph), post = post_dominators(graph);
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(tree.depth(OpId(i)) >= 1);
      REQUIRE(tree.dominates(OpId(0), OpId(i)));
      REQUIRE(post.dominates(OpId(n - 1), OpId(i)));
    }
    CHECK(tree.depth(OpId(n / 2 - 1)) == static_cast<std::int32_t>(n / 2));
  }
  const DominatorTree chain = dominators(chain_graph(n));
  Random random(2);
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t a = random.below(n), b = random.below(n);
    REQUIRE(chain.common(OpId(a), OpId(b)) == OpId(std::min(a, b)));
  }
}

}  // namespace lowtide
