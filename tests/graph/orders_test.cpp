#include "lowtide/graph/orders.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "graph/shapes.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {

TEST_CASE("every order is topological, on random graphs") {
  Random random(1);
  for (int i = 0; i < 2000 * test_scale(); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(16);
    const Graph graph = random_graph(random, settings);
    CHECK(is_topological(graph, graph.order()));
    CHECK(is_topological(graph, index_order(graph)));
    CHECK(is_topological(graph, breadth_first_order(graph)));
    CHECK(is_topological(graph, depth_first_order(graph)));
    CHECK(is_topological(graph, random_order(graph, random)));
  }
}

TEST_CASE("orders of a small graph, by hand") {
  // 0 -> 3, 1 -> 2 -> 3, 2 -> 4
  const Graph graph = graph_of_edges(5, {{0, 3}, {1, 2}, {2, 3}, {2, 4}});
  CHECK(index_order(graph) == op_ids({0, 1, 2, 3, 4}));
  CHECK(breadth_first_order(graph) == op_ids({0, 1, 2, 3, 4}));
  CHECK(depth_first_order(graph) == op_ids({0, 1, 2, 3, 4}));
  // Listed the other way round: 4 -> 1, 3 -> 2 -> 1, 2 -> 0
  GraphBuilder builder;
  for (int i = 0; i < 5; ++i) builder.add_tensor({});
  builder.add_op({}, OpLinks{{2}, {0}, {}, {}});
  builder.add_op({}, OpLinks{{4, 2}, {1}, {}, {}});
  builder.add_op({}, OpLinks{{3}, {2}, {}, {}});
  builder.add_op({}, OpLinks{{}, {3}, {}, {}});
  builder.add_op({}, OpLinks{{}, {4}, {}, {}});
  builder.set_order({3, 2, 4, 1, 0});
  const Graph reversed = builder.build();
  CHECK(index_order(reversed) == op_ids({3, 2, 0, 4, 1}));
  CHECK(breadth_first_order(reversed) == op_ids({3, 4, 2, 0, 1}));
  CHECK(depth_first_order(reversed) == op_ids({4, 3, 2, 1, 0}));
}

TEST_CASE("is_topological refuses lists that are no topological order") {
  const Graph graph = chain_graph(4);
  CHECK(is_topological(graph, op_ids({0, 1, 2, 3})));
  CHECK_FALSE(is_topological(graph, op_ids({0, 1, 2})));
  CHECK_FALSE(is_topological(graph, op_ids({0, 1, 2, 2})));
  CHECK_FALSE(is_topological(graph, op_ids({0, 2, 1, 3})));
  CHECK_FALSE(is_topological(graph, op_ids({0, 1, 2, 7})));
  CHECK_FALSE(is_topological(graph, std::vector<OpId>(4)));
}

TEST_CASE("is_topological agrees with the definition on shuffled orders") {
  Random random(2);
  int yes = 0;
  for (int i = 0; i < 3000; ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(5);
    const Graph graph = random_graph(random, settings);
    std::vector<OpId> order(graph.order().begin(), graph.order().end());
    random.shuffle(order);
    bool expected = true;
    for (std::size_t a = 0; a < order.size(); ++a)
      for (std::size_t b = a + 1; b < order.size(); ++b) {
        const auto before = graph.predecessors(order[a]);
        if (std::find(before.begin(), before.end(), order[b]) != before.end()) expected = false;
      }
    CHECK(is_topological(graph, order) == expected);
    yes += expected ? 1 : 0;
  }
  CHECK(yes > 300);
}

TEST_CASE("a random order may be any order, and follows from the seed") {
  const Graph graph = graph_of_edges(4, {{0, 3}});
  std::set<std::vector<OpId>> seen;
  Random random(3);
  for (int i = 0; i < 1000; ++i) seen.insert(random_order(graph, random));
  CHECK(seen.size() == 12);
  Random a(4), b(4);
  CHECK(random_order(graph, a) == random_order(graph, b));
}

TEST_CASE("orders of a chain of 200,000 ops") {
  const Graph graph = chain_graph(static_cast<std::size_t>(sanitized(20'000, 200'000)));
  Random random(5);
  CHECK(is_topological(graph, index_order(graph)));
  CHECK(is_topological(graph, breadth_first_order(graph)));
  CHECK(is_topological(graph, depth_first_order(graph)));
  CHECK(is_topological(graph, random_order(graph, random)));
}

}  // namespace lowtide
