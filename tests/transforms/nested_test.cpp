// Splits of what an earlier split has made.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/transforms/apply.h"

#include "support/network.h"

namespace lowtide {
namespace {

Split split_of(OpId op, TensorId axis_of, std::int64_t dim, TensorId joined) {
  Split split;
  split.ops = {op};
  split.axes = {{axis_of, dim}};
  split.prices = {{{op, Ticks(1), Bytes(0)}}};
  split.joins = {{joined, Ticks(1), Bytes(0)}};
  return split;
}

TEST_CASE("nested splits: parts of parts") {
  Network net;
  const auto x = net.tensor({6, 4}), a = net.tensor({6, 4}), b = net.tensor({6, 4});
  net.op("aten.relu", {net.whole("self", x)}, {a});
  net.op("aten.relu", {net.whole("self", a)}, {b});
  net.keep(b);
  const Graph graph = net.graph();
  Split outer = split_of(OpId(0), TensorId(0), 0, TensorId(2));
  outer.ops.push_back(OpId(1));
  outer.prices.front().push_back({OpId(1), Ticks(1), Bytes(0)});
  std::vector<Transform> transforms{outer};
  const TransformedGraph once = apply_transforms(graph, transforms);
  Split inner;
  inner.ops = {once.op_index[OpId(0)], once.op_index[OpId(1)]};
  inner.axes = {{once.tensor_index[once.graph.outputs(OpId(0)).front()], 1}};
  inner.prices = {{{inner.ops[0], Ticks(2), Bytes(0)}, {inner.ops[1], Ticks(2), Bytes(0)}}};
  inner.joins = {{once.tensor_index[once.graph.outputs(OpId(1)).front()], Ticks(1), Bytes(0)}};
  transforms.emplace_back(inner);
  const TransformedGraph twice = apply_transforms(graph, transforms);
  CHECK(twice.graph.op_count() == 6 - 2 + 6);
  CHECK(twice.graph.op(twice.graph.order()[0]).name == "relu_0[1/2][1/2]");
  const OpId deep = twice.graph.order()[0];
  CHECK(twice.parts[deep] == std::vector<PartOf>{{0, 0}, {1, 0}});
  const Operand& read = twice.graph.op(deep).operands.front();
  CHECK(read.shape == std::vector<std::int64_t>{3, 2});
  CHECK(read.strides == std::vector<std::int64_t>{4, 1});
  // What was split is gone.
  transforms.emplace_back(inner);
  CHECK_THROWS_WITH_AS(apply_transforms(graph, transforms),
                       "transforms/2: op 2 \"relu_0[1/2]\" was replaced by transform 1",
                       TransformRefused);
}

// The weights of the parts of a mean, by their order in the graph.
std::vector<Literal> weights(const Graph& graph) {
  std::vector<Literal> found;
  for (const OpId op : graph.order())
    for (const Argument& argument : graph.op(op).arguments)
      if (argument.name == "lowtide.weight") found.push_back(argument.value);
  return found;
}

Literal share(std::int64_t part, std::int64_t all) { return {Literal::List{{part}, {all}}}; }

TEST_CASE("nested splits: a mean in parts of parts has one weight, its share of the whole") {
  Network net;
  const auto x = net.tensor({9, 4}), y = net.tensor({});
  net.op("aten.mean", {net.whole("self", x)}, {y}, {{"dim", {}}, {"keepdim", {false}}});
  net.keep(y);
  const Graph graph = net.graph();
  std::vector<Transform> transforms{split_of(OpId(0), TensorId(0), 0, TensorId(1))};
  const TransformedGraph once = apply_transforms(graph, transforms);
  CHECK(weights(once.graph) == std::vector<Literal>{share(5, 9), share(4, 9)});

  const OpId first = once.graph.order()[0];
  transforms.emplace_back(split_of(once.op_index[first], TensorId(0), 1,
                                   once.tensor_index[once.graph.outputs(first).front()]));
  const TransformedGraph twice = apply_transforms(graph, transforms);
  CHECK(weights(twice.graph) == std::vector<Literal>{share(5, 18), share(5, 18), share(4, 9)});
}

TEST_CASE("nested splits: invalid or too small weights are refused") {
  const std::int64_t large = std::int64_t{1} << 62;
  for (const Literal& weight : {Literal{std::string("total")}, Literal{Literal::List{{1}}},
                                share(3, 2), share(0, 2), share(1, large)}) {
    Network net;
    const auto x = net.tensor({9, 4}), y = net.tensor({});
    net.op("aten.mean", {net.whole("self", x)}, {y},
           {{"dim", {}}, {"keepdim", {false}}, {"lowtide.weight", weight}});
    net.keep(y);
    const Graph graph = net.graph();
    const bool small = weight == share(1, large);
    CHECK_THROWS_WITH_AS(
        apply_transforms(graph,
                         std::vector<Transform>{split_of(OpId(0), TensorId(0), 0, TensorId(1))}),
        doctest::Contains(small ? "is below 1 in 2^63" : "is not a fraction of slices"),
        TransformRefused);
  }
}

}  // namespace
}  // namespace lowtide
