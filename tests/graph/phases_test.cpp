#include "lowtide/graph/phases.h"

#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/graph/builder.h"
#include "lowtide/graph/generate.h"

#include "support/random_graph.h"

namespace lowtide {

namespace {

// What phases.h promises for every graph.
void require_right(const Graph& graph) {
  const Phases phases = phases_of(graph);
  for (const OpId op : graph.order()) {
    const OpId layer = phases.layer[op];
    if (layer.valid()) CHECK(phases.of[layer] == Phase::forward);
    if (layer.valid() && phases.of[op] == Phase::forward) CHECK(layer == op);
    for (const OpId before : graph.predecessors(op)) {
      if (phases.of[before] == Phase::forward) continue;
      CHECK(phases.of[op] == Phase::backward);
      const OpId earlier = phases.layer[before];
      if (layer.valid() && earlier.valid()) CHECK(graph.position(layer) <= graph.position(earlier));
      CHECK((earlier.valid() || !layer.valid()));  // nothing of the backward comes behind it
    }
  }
}

struct Step {
  std::string name, phase, origin;
  std::vector<std::int64_t> reads, makes;
};

Graph graph_of(std::size_t tensors, const std::vector<Step>& steps) {
  GraphBuilder builder;
  for (std::size_t i = 0; i < tensors; ++i) builder.add_tensor(Tensor());
  for (const Step& step : steps) {
    OpLinks links;
    links.inputs = step.reads;
    links.outputs = step.makes;
    Op op;
    op.name = step.name;
    op.phase = step.phase;
    op.origin = step.origin;
    builder.add_op(std::move(op), links);
  }
  return builder.build();
}

std::string layer_name(const Graph& graph, const Phases& phases, std::size_t op) {
  const OpId layer = phases.layer[OpId(op)];
  return layer.valid() ? graph.op(layer).name : "none";
}

}  // namespace

TEST_CASE("phases: invariants hold on random graphs") {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    RandomGraphSettings settings;
    settings.ops = 15;
    settings.barrier = i % 2 == 0 ? 0.2 : 0.04;
    require_right(random_graph(random, settings));
  }
  for (const std::string_view kind : generator_kinds())
    for (std::uint64_t seed = 0; seed < 3; ++seed) require_right(generate(kind, 300, seed));
}

// Where the front end says of each op at which layer it stands, the pairs are known.
TEST_CASE("phases: a backward op belongs to the layer of its forward op") {
  for (const std::string_view kind : {"chain", "resnet", "unet", "transformer"}) {
    const Graph graph = generate(kind, 400, 2);
    const Phases phases = phases_of(graph);
    std::size_t alone = 0, astray = 0;
    for (const OpId op : graph.order()) {
      if (!phases.layer[op].valid()) ++alone;
      // Sums of gradients stand where the gradient came from, not where it goes.
      else if (graph.op(op).kind != "aten.add" &&
               graph.op(op).origin != graph.op(phases.layer[op]).origin)
        ++astray;
    }
    CHECK(alone == 1);
    CHECK(astray == 0);
  }
}

TEST_CASE("phases: layers follow from what backward ops read") {
  // Tensors: 0 x, 1 w, 2 y = f(x, w), 3 z = g(y), 4 loss, 5 dz, 6 dy, 7 dx, 8 dw.
  const Graph graph = graph_of(9, {{"f", "forward", "", {0, 1}, {2}},
                                   {"g", "forward", "", {2}, {3}},
                                   {"loss", "forward", "", {3}, {4}},
                                   {"loss_b", "backward", "", {4}, {5}},
                                   {"g_b", "backward", "", {3, 5}, {6}},
                                   {"f_bx", "backward", "", {1, 6}, {7}},
                                   {"f_bw", "backward", "", {0, 6}, {8}}});
  const Phases phases = phases_of(graph);
  CHECK(layer_name(graph, phases, 2) == "none");  // all of the backward depends on it
  CHECK(layer_name(graph, phases, 3) == "g");     // reads it alone; where its gradient goes
  CHECK(layer_name(graph, phases, 4) == "g");
  CHECK(layer_name(graph, phases, 5) == "f");
  CHECK(layer_name(graph, phases, 6) == "f");
}

TEST_CASE("phases: ops of an optimizer have no layer") {
  // 0 x, 1 w, 2 y, 3 loss, 4 dy, 5 dw, 6 new w
  const Graph graph = graph_of(8, {{"f", "forward", "", {0, 1}, {2}},
                                   {"loss", "forward", "", {2}, {3}},
                                   {"loss_b", "backward", "", {2, 3}, {4}},
                                   {"f_b", "backward", "", {0, 4}, {5}},
                                   {"step", "optimizer", "", {1, 5}, {6}},
                                   {"after", "", "", {6}, {7}}});
  const Phases phases = phases_of(graph);
  CHECK(layer_name(graph, phases, 3) == "f");
  CHECK(layer_name(graph, phases, 4) == "none");
  CHECK(layer_name(graph, phases, 5) == "none");
}

TEST_CASE("phases: a graph without a backward is forward") {
  const Graph graph = graph_of(2, {{"a", "", "", {}, {0}}, {"b", "backward", "", {0}, {1}}});
  const Phases all = phases_of(graph_of(1, {{"a", "backward", "", {}, {0}}}));
  CHECK_FALSE(all.has_backward);
  CHECK(all.of[OpId(0)] == Phase::forward);
  CHECK(phases_of(graph).has_backward);
}

}  // namespace lowtide
