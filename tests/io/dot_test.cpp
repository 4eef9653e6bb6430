// DOT text, whole, for a graph with one of everything.
#include "lowtide/report/dot.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "lowtide/graph/builder.h"

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

}  // namespace
}  // namespace lowtide
