#include "lowtide/graph/cuts.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/graph/generate.h"

#include "graph/closure.h"
#include "graph/shapes.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {

namespace {

std::vector<OpId> slow_cut_ops(const Graph& graph) {
  const Closure closure = make_closure(graph);
  std::vector<OpId> cuts;
  for (OpId op : graph.order()) {
    bool comparable = true;
    for (std::size_t i = 0; i < graph.op_count(); ++i)
      comparable = comparable && (closure[i][op.index()] || closure[op.index()][i]);
    if (comparable) cuts.push_back(op);
  }
  return cuts;
}

std::vector<TensorCut> slow_tensor_cuts(const Graph& graph, std::size_t first, std::size_t last) {
  std::vector<TensorCut> cuts;
  for (std::size_t at = first + 1; at < last; ++at) {
    std::vector<TensorId> crossing;
    for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
      const TensorId id(i);
      if (graph.is_input(id)) continue;
      const std::size_t made = graph.position(graph.producer(id));
      const auto readers = graph.consumers(id);
      const bool read = std::any_of(readers.begin(), readers.end(), [&](OpId op) {
        return graph.position(op) >= at && graph.position(op) < last;
      });
      if (made >= first && made < at && read) crossing.push_back(id);
    }
    if (crossing.size() == 1) cuts.push_back({at, crossing.front()});
  }
  return cuts;
}

}  // namespace

TEST_CASE("cut ops agree with their definition on random graphs") {
  Random random(1);
  std::size_t found = 0;
  for (int i = 0; i < 3000 * test_scale(); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(14);
    settings.window = 1 + random.below(4);
    if (random.chance(0.5)) settings = RandomGraphSettings::plain(settings.ops);
    settings.window = 1 + random.below(3);
    const Graph graph = random_graph(random, settings);
    const auto cuts = cut_ops(graph);
    REQUIRE(cuts == slow_cut_ops(graph));
    found += cuts.size();
  }
  CHECK(found > 3000);
}

TEST_CASE("tensor cuts agree with their definition on all ranges of random graphs") {
  Random random(2);
  std::size_t found = 0;
  for (int i = 0; i < 400 * test_scale(); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(12);
    settings.window = 1 + random.below(4);
    const Graph graph = random_graph(random, settings);
    for (std::size_t first = 0; first <= settings.ops; ++first)
      for (std::size_t last = first; last <= settings.ops; ++last) {
        const auto cuts = tensor_cuts(graph, first, last);
        REQUIRE(cuts == slow_tensor_cuts(graph, first, last));
        found += cuts.size();
      }
  }
  CHECK(found > 3000);
}

TEST_CASE("a chain is cut everywhere, a ladder nowhere but in its forward") {
  const auto n = static_cast<std::size_t>(sanitized(20'000, 200'000));
  const Graph chain = chain_graph(n);
  CHECK(cut_ops(chain).size() == n);
  CHECK(tensor_cuts(chain, 0, n).size() == n - 1);
  const Graph ladder = ladder_graph(n / 2);
  CHECK(cut_ops(ladder).size() == n);
  const auto forward = tensor_cuts(ladder, 0, n / 2);
  REQUIRE(forward.size() == n / 2 - 1);
  CHECK(forward.front() == TensorCut{1, TensorId(0)});
  // Of the whole, only where nothing but the first output waits.
  CHECK(tensor_cuts(ladder, 0, n) == std::vector<TensorCut>{{1, TensorId(0)}});
  CHECK(tensor_cuts(chain, 7, 7).empty());
  CHECK_THROWS_AS(tensor_cuts(chain, 7, n + 1), InternalError);
}

TEST_CASE("the forward of a generated transformer is cut at every residual signal") {
  const Graph graph = generate("transformer", 1000, 0);
  std::size_t barrier = 0;
  while (!graph.is_barrier(graph.order()[barrier])) ++barrier;
  std::vector<std::string> names;
  for (const TensorCut& cut : tensor_cuts(graph, 0, barrier))
    names.push_back(graph.op(graph.producer(cut.tensor)).origin);
  for (int block = 0; block < 28; ++block)
    CHECK(std::count(names.begin(), names.end(), "h" + std::to_string(block)) > 0);
}

}  // namespace lowtide
