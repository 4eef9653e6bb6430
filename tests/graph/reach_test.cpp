#include "lowtide/graph/reach.h"

#include <doctest/doctest.h>

#include "lowtide/graph/generate.h"

#include "graph/closure.h"
#include "graph/shapes.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {

namespace {

void check_all_pairs(const Graph& graph) {
  const Closure closure = make_closure(graph);
  Reachability reach(graph);
  for (std::size_t a = 0; a < graph.op_count(); ++a)
    for (std::size_t b = 0; b < graph.op_count(); ++b) {
      REQUIRE(reach.reaches(OpId(a), OpId(b)) == closure[a][b]);
      REQUIRE(reach.independent(OpId(a), OpId(b)) == (!closure[a][b] && !closure[b][a]));
    }
}

}  // namespace

TEST_CASE("reachability agrees with the closure on random graphs") {
  Random random(1);
  for (int i = 0; i < 2000 * test_scale(); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(24);
    settings.window = 1 + random.below(12);
    settings.reads = 1 + random.below(4);
    check_all_pairs(random_graph(random, settings));
  }
}

TEST_CASE("reachability agrees with the closure on generated networks") {
  for (std::string_view kind : generator_kinds())
    for (std::uint64_t seed = 0; seed < 3; ++seed) check_all_pairs(generate(kind, 250, seed));
}

TEST_CASE("ancestors and descendants of sets agree with the closure") {
  Random random(2);
  for (int i = 0; i < 2000 * test_scale(); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(20);
    const Graph graph = random_graph(random, settings);
    const Closure closure = make_closure(graph);
    std::vector<OpId> of;
    for (std::size_t k = random.below(4); k > 0; --k) of.emplace_back(random.below(settings.ops));
    const auto above = ancestors(graph, of), below = descendants(graph, of);
    for (std::size_t op = 0; op < settings.ops; ++op) {
      bool reaches = false, reached = false;
      for (OpId other : of) {
        reaches = reaches || closure[op][other.index()];
        reached = reached || closure[other.index()][op];
      }
      REQUIRE(above[op] == reaches);
      REQUIRE(below[op] == reached);
    }
  }
}

TEST_CASE("reachability in a chain and a ladder of 200,000 ops") {
  Random random(3);
  const auto n = static_cast<std::size_t>(sanitized(20'000, 200'000));
  for (const Graph& graph : {chain_graph(n), ladder_graph(n / 2)}) {
    Reachability reach(graph);
    for (std::size_t i = 0; i < n / 2; ++i) {
      const std::size_t a = random.below(n), b = random.below(n);
      REQUIRE(reach.reaches(OpId(a), OpId(b)) == (a <= b));
    }
    CHECK(reach.searched() < 1000);
    const std::vector<OpId> middle = {OpId(n / 2)};
    const auto above = ancestors(graph, middle), below = descendants(graph, middle);
    CHECK(above[0]);
    CHECK_FALSE(above[n / 2 + 1]);
    CHECK(below[n - 1]);
    CHECK_FALSE(below[n / 2 - 1]);
  }
}

}  // namespace lowtide
