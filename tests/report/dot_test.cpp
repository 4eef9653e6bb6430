// DOT text, whole, for a graph with one of everything.
#include "lowtide/report/dot.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "lowtide/graph/builder.h"
#include "lowtide/graph/make_partition.h"

namespace lowtide {
namespace {

Tensor tensor(std::string name, std::int64_t bytes) {
  Tensor result;
  result.name = std::move(name);
  result.bytes = Bytes(bytes);
  return result;
}

TEST_CASE("dot: one of everything") {
  GraphBuilder builder;
  builder.set_name("a \"name\"\\");
  builder.set_tick(TickUnit::us);
  builder.add_tensor(tensor("x", 2048));
  builder.add_tensor(tensor("y\nz", 5));
  builder.add_tensor(tensor("loss", 4));
  Op first, second, last;
  first.name = "f";
  first.kind = "aten.mm";
  first.time = Ticks(1500);
  first.workspace = Bytes(1 << 20);
  second.name = second.kind = "g";
  last.recomputable = false;
  builder.add_op(first, OpLinks{{0}, {1}, {}, {}});
  builder.add_op(second, OpLinks{{1}, {2}, {}, {}});
  builder.add_op(last, OpLinks{{0}, {}, {1}, {0}});
  builder.set_outputs({2});
  CHECK(report::write_dot(builder.build()) == R"(digraph "a \"name\"\\" {
  node [shape=box];
  op0 [label="f\naten.mm\n1.50 ms\nworkspace 1.00 MiB"];
  op1 [label="g\n0 us"];
  op2 [label="op 2\n0 us", style=bold];
  tensor0 [shape=ellipse, label="x\n2.00 KiB"];
  tensor2 [shape=ellipse, label="loss\n4 B", peripheries=2];
  op1 -> tensor2;
  tensor0 -> op0;
  op0 -> op1 [label="y z\n5 B"];
  tensor0 -> op2 [color=red];
  op1 -> op2 [style=dashed];
}
)");
}

TEST_CASE("dot: no ops") {
  GraphBuilder builder;
  CHECK(report::write_dot(builder.build()) == "digraph \"\" {\n  node [shape=box];\n}\n");
}

TEST_CASE("dot: blocks as nested clusters") {
  GraphBuilder builder;
  for (int i = 0; i < 3; ++i) {
    builder.add_tensor(tensor("", 1));
    Op op;
    op.name = "op" + std::to_string(i);
    OpLinks links;
    if (i > 0) links.inputs = {i - 1};
    links.outputs = {i};
    builder.add_op(std::move(op), links);
  }
  const Graph graph = builder.build();
  BlockTree tree(3);
  const BlockId outer = tree.add(Partition::root()), inner = tree.add(outer, "a \"name\"");
  tree.block_of[OpId(1)] = outer;
  tree.block_of[OpId(2)] = inner;
  CHECK(report::write_dot(graph, make_partition(graph, phases_of(graph), tree)) == R"(digraph "" {
  node [shape=box];
  op0 [label="op0\n0"];
  subgraph cluster_1_forward {
  label="block 1";
  op1 [label="op1\n0"];
  subgraph cluster_2_forward {
  label="a \"name\"";
  op2 [label="op2\n0"];
  }
  }
  op0 -> op1 [label="1 B"];
  op1 -> op2 [label="1 B"];
}
)");
}

}  // namespace
}  // namespace lowtide
