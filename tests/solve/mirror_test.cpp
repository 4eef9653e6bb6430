// What orders a training step so that its backward mirrors its forward.
#include "lowtide/solve/local/mirror/mirror.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/graph/builder.h"
#include "lowtide/graph/generate.h"
#include "lowtide/graph/phases.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/local/drop/drop.h"
#include "lowtide/solve/sequence/sequence.h"

#include "solve/run_solver.h"

namespace lowtide {
namespace {

TEST_CASE(
    "mirror: every order is topological, differs from the given one, and has the forward first") {
  std::size_t found = 0;
  for (const std::string_view kind : {"unet", "resnet", "transformer", "chain"})
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      CAPTURE(kind);
      CAPTURE(seed);
      const Graph graph = generate(kind, 200, seed);
      const Phases phases = phases_of(graph);
      Limits limits;
      for (const auto& order : solve::local::mirror::mirrored_orders(graph, limits)) {
        ++found;
        REQUIRE(order.size() == graph.op_count());
        std::vector<std::size_t> place(order.size(), order.size());
        for (std::size_t i = 0; i < order.size(); ++i) place[order[i].index()] = i;
        for (const OpId op : graph.order())
          for (const OpId before : graph.predecessors(op))
            CHECK(place[before.index()] < place[op.index()]);
        CHECK(std::ranges::is_partitioned(
            order, [&](OpId op) { return phases.of[op] == Phase::forward; }));
        CHECK_FALSE(solve::follows_order(graph, order));
      }
    }
  CHECK(found >= 12);
}

TEST_CASE("mirror: no order without a backward or without work") {
  Limits unlimited, none(LimitSettings{.work = 1});
  CHECK(solve::local::mirror::mirrored_orders(generate("layered", 100, 1), unlimited).empty());
  CHECK(solve::local::mirror::mirrored_orders(generate("unet", 100, 1), none).empty());
}

// A step of nested skip connections, as in U-Net++: each node reads all of its row before it and
// the latest of the row below. Recorded one diagonal after the other; the backward the other way
// round.
Graph nested(std::size_t depth) {
  struct Node {
    std::vector<std::int64_t> inputs;
    std::int64_t inner, output;
    std::size_t row;
  };
  GraphBuilder builder;
  const auto add_tensor = [&](std::size_t row) {
    Tensor tensor;
    tensor.bytes = Bytes(4096 >> (2 * row));
    return static_cast<std::int64_t>(builder.add_tensor(std::move(tensor)).index());
  };
  const auto add = [&](std::vector<std::int64_t> inputs, std::vector<std::int64_t> outputs,
                       std::int64_t time, std::string_view phase) {
    Op op;
    op.time = Ticks(time);
    op.phase = phase;
    OpLinks links;
    links.inputs = std::move(inputs);
    links.outputs = std::move(outputs);
    builder.add_op(std::move(op), links);
  };
  std::vector<std::vector<std::int64_t>> rows(depth);
  std::vector<Node> nodes;
  for (std::size_t diagonal = 0; diagonal < depth; ++diagonal)
    for (std::size_t below = 0; below <= diagonal; ++below) {
      const std::size_t row = diagonal - below;
      Node node{rows[row], add_tensor(row), add_tensor(row), row};
      if (below > 0) node.inputs.push_back(rows[row + 1].back());
      if (below == 0 && row > 0) node.inputs.push_back(rows[row - 1].front());
      add(node.inputs, {node.inner}, 100, "forward");
      add({node.inner}, {node.output}, 10, "forward");
      rows[row].push_back(node.output);
      nodes.push_back(std::move(node));
    }
  std::map<std::int64_t, std::vector<std::int64_t>> gradients;
  const std::int64_t loss = add_tensor(0);
  add({rows[0].back()}, {loss}, 10, "forward");
  gradients[rows[0].back()] = {loss};
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const Node& node = nodes[i];
    const std::int64_t inner = add_tensor(node.row), weight = add_tensor(depth);
    std::vector<std::int64_t> made{weight}, read = node.inputs, late = gradients[node.output];
    late.push_back(node.inner);
    add(std::move(late), {inner}, 10, "backward");
    for (const std::int64_t input : node.inputs) {
      const auto of = std::ranges::find(nodes, input, &Node::output);
      made.push_back(add_tensor(of->row));
      gradients[input].push_back(made.back());
    }
    read.push_back(inner);
    add(std::move(read), std::move(made), 200, "backward");
    builder.add_output(TensorId(static_cast<std::size_t>(weight)));
  }
  return builder.build();
}

TEST_CASE("mirror: nested skip connections have less overhead than in the given order") {
  const auto drop = solve::local::drop::make_drop(), mirror = solve::local::mirror::make_mirror();
  for (const std::size_t depth : {4u, 5u, 6u}) {
    CAPTURE(depth);
    const Graph graph = nested(depth);
    const Problem problem{.graph = graph, .budget = Bytes(own_peak(graph).count() / 10 * 8)};
    const Outcome recorded = run_solver(*drop, problem), mirrored = run_solver(*mirror, problem);
    REQUIRE(recorded.plan);
    REQUIRE(mirrored.plan);
    CHECK(mirrored.cost.duration < recorded.cost.duration);
  }
}

}  // namespace
}  // namespace lowtide
