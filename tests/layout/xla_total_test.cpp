// Buffers as XLA assigns them, by hand and against the peak.
#include "lowtide/layout/xla_total.h"

#include <doctest/doctest.h>

#include "lowtide/sim/simulate.h"

#include "support/random_graph.h"
#include "support/scale.h"
#include "support/sketch.h"

namespace lowtide::layout {
namespace {

Bytes total(const Graph& graph) {
  return xla_total(graph, plan_from_sequence(graph, graph.order()));
}

TEST_CASE("xla: an output has its buffer from the start; what fits lies in it") {
  // 0 -> 1 -> 2 -> 3, which is the output
  const auto chain = [](std::int64_t temporary, std::int64_t output) {
    return Sketch({10, temporary, 5, output})
        .op({0}, {1})
        .op({1}, {2})
        .op({2}, {3})
        .keep({3})
        .graph();
  };
  CHECK(total(chain(20, 20)) == Bytes(10 + 20 + 5));  // the temporary of 20 lies in the output
  CHECK(total(chain(21, 20)) == Bytes(10 + 20 + 21 + 5));
  CHECK(own_peak(chain(21, 20)) == Bytes(10 + 21 + 5));
}

TEST_CASE("xla: an output goes to a donated input of its size") {
  const auto update = [](bool donated) {
    Sketch sketch({10, 10});
    sketch.op({0}, {1}).in_place({{0, 1}}).keep({1});
    return donated ? sketch.releasable({0}).graph() : sketch.graph();
  };
  CHECK(total(update(true)) == Bytes(10));
  CHECK(total(update(false)) == Bytes(20));
  // it is read before, and so cannot be written over
  const Graph later =
      Sketch({10, 4, 10}).op({0}, {1}).op({1}, {2}).releasable({0}).keep({2}).graph();
  CHECK(total(later) == Bytes(14));
}

TEST_CASE("xla: workspace fills what is free") {
  const Graph graph = Sketch({10, 4, 8}).op({0}, {1}).workspace(20).op({1}, {2}).keep({2}).graph();
  CHECK(total(graph) == Bytes(10 + 8 + 4 + 12));
}

TEST_CASE("xla: never below the peak") {
  for (int i = 0; i < 300 * test_scale(); ++i) {
    Random random(static_cast<std::uint64_t>(i));
    const Graph graph = random_graph(random);
    if (graph.has_tensors_on_host()) continue;
    const Plan plan = plan_from_sequence(graph, graph.order());
    CHECK(xla_total(graph, plan) >= simulate(graph, plan).cost.peak);
  }
}

}  // namespace
}  // namespace lowtide::layout
