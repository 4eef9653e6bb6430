#include "lowtide/graph/builder.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"

#include "graph/shapes.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {

namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

Tensor sized(std::int64_t bytes, std::string name = {}) {
  Tensor tensor;
  tensor.bytes = Bytes(bytes);
  tensor.name = std::move(name);
  return tensor;
}

Op timed(std::int64_t time, std::string name = {}) {
  Op op;
  op.time = Ticks(time);
  op.name = std::move(name);
  return op;
}

// Tensors 0 (an input), 1, 2 and 3; `change` then adds what is wrong.
void refused(const std::string& place, const std::string& words,
             const std::function<void(GraphBuilder&)>& change) {
  GraphBuilder builder;
  builder.add_tensor(sized(1, "x"));
  for (int i = 1; i < 4; ++i) builder.add_tensor(sized(1));
  builder.add_op(timed(1, "f"), OpLinks{{0}, {1}, {}, {}});
  change(builder);
  try {
    builder.build();
    FAIL("built, but should not be: ", words);
  } catch (const InputError& error) {
    CHECK(error.place() == place);
    CHECK_MESSAGE(error.reason().find(words) != std::string::npos, error.reason());
  }
}

}  // namespace

TEST_CASE("the builder refuses indices out of range") {
  refused("/ops/1/inputs/1", "op 1 \"g\": there is no tensor 4; indices run from 0 to 3",
          [](auto& b) {
            b.add_op(timed(1, "g"), OpLinks{{0, 4}, {}, {}, {}});
          });
  refused("/ops/1/inputs/0", "there is no tensor -1", [](auto& b) {
    b.add_op(timed(1), OpLinks{{-1}, {}, {}, {}});
  });
  refused("/ops/1/outputs/0", "there is no tensor 9", [](auto& b) {
    b.add_op(timed(1), OpLinks{{}, {9}, {}, {}});
  });
  refused("/ops/1/after/0", "there is no op 2; indices run from 0 to 1", [](auto& b) {
    b.add_op(timed(1), OpLinks{{}, {2}, {2}, {}});
  });
  refused("/ops/1/mutates/0", "there is no tensor 77", [](auto& b) {
    b.add_op(timed(1), OpLinks{{}, {2}, {}, {77}});
  });
  refused("/outputs/1", "there is no tensor 4; indices run from 0 to 3", [](auto& b) {
    b.set_outputs({1, 4});
  });
  refused("/order/0", "there is no op 5; indices run from 0 to 0",
          [](auto& b) { b.set_order({5}); });
}

TEST_CASE("the builder refuses invalid in-place pairs") {
  const auto with = [](std::vector<std::array<std::int64_t, 2>> pairs,
                       std::vector<std::int64_t> mutates = {}) {
    return [=](auto& b) {
      OpLinks links{{0, 1}, {2}, {}, mutates};
      links.in_place = pairs;
      b.add_op(timed(1, "g"), links);
    };
  };
  refused("/ops/1/in_place/0", "op 1 \"g\": it does not read tensor 3", with({{3, 2}}));
  refused("/ops/1/in_place/0", "it does not make tensor 3", with({{0, 3}}));
  refused("/ops/1/in_place/1", "there is no tensor 4", with({{0, 2}, {4, 2}}));
  refused("/ops/1/in_place/1", "tensor 0 \"x\" stands in two pairs", with({{0, 2}, {0, 2}}));
  refused("/ops/1/in_place/0", "it mutates tensor 0", with({{0, 2}}, {0}));
  refused("/ops/1/in_place/0", "has 1 bytes and tensor 4 7; they must be equal", [](auto& b) {
    b.add_tensor(sized(7));
    OpLinks links{{0}, {4}, {}, {}};
    links.in_place = {{0, 4}};
    b.add_op(timed(1), links);
  });
  refused("/ops/1/in_place/0", "a barrier does not run in place", [](auto& b) {
    Op op = timed(0);
    op.kind = kBarrierKind;
    OpLinks links{{0}, {2}, {}, {}};
    links.in_place = {{0, 2}};
    b.add_op(std::move(op), links);
  });
}

TEST_CASE("the builder refuses operands that are not the op's, or leave their storage") {
  const auto with = [](std::vector<Operand> operands, std::vector<Operand> results = {},
                       bool in_place = false) {
    return [=](auto& b) {
      b.add_tensor(sized(24));
      b.add_tensor(sized(24));
      Op op = timed(1, "g");
      op.operands = operands;
      op.results = results;
      OpLinks links{{4}, {5}, {}, {}};
      if (in_place) links.in_place = {{4, 5}};
      for (const Operand& operand : operands)
        links.operand_tensors.push_back(static_cast<std::int64_t>(operand.tensor.index()));
      b.add_op(std::move(op), links);
    };
  };
  const auto part = [](std::size_t tensor, std::vector<std::int64_t> shape,
                       std::vector<std::int64_t> strides, std::int64_t offset = 0) {
    return Operand{.argument = "self",
                   .index = -1,
                   .tensor = TensorId(tensor),
                   .shape = std::move(shape),
                   .strides = std::move(strides),
                   .offset = offset,
                   .dtype = "f32"};
  };
  refused("/ops/1/operands/0", "is not among its \"inputs\"", with({part(3, {1}, {1})}));
  const auto nameless = [&](std::size_t tensor, std::vector<std::int64_t> shape) {
    Operand operand = part(tensor, std::move(shape), {1});
    operand.argument.clear();
    return operand;
  };
  refused("/ops/1/operands/0", "op 1 \"g\": the operand in tensor 4 leaves its storage",
          with({nameless(4, {7})}));
  refused("/ops/1/results/0", "op 1 \"g\": the result in tensor 5 leaves its storage",
          with({}, {nameless(5, {7})}));
  refused("/ops/1/results/0", "is neither among its \"outputs\"", with({}, {part(4, {1}, {1})}));
  refused("/ops/1/operands/0", "2 extents and 1 strides", with({part(4, {2, 3}, {1})}));
  refused("/ops/1/operands/0", "it reaches element 6 of f32, and the storage has 24 bytes",
          with({part(4, {2, 3}, {3, 1}, 1)}));
  refused("/ops/1/operands/0", "leaves its storage", with({part(4, {2, 3}, {4, 1})}));
  refused("/ops/1/operands/0", "negative", with({part(4, {2}, {-1})}));
  refused("/ops/1/operands/0", "beyond 63 bits", with({part(4, {3}, {INT64_MAX})}));
  refused("/ops/1/in_place/0", "is not the whole of it", with({part(4, {5}, {1})}, {}, true));
  refused("/ops/1/in_place/0", "is not the whole of it", with({part(4, {6}, {0})}, {}, true));
  refused("/ops/1/in_place/0", "is not the whole of it", with({part(4, {2, 3}, {2, 0})}, {}, true));
  const Operand whole = part(4, {2, 3}, {3, 1});
  Operand result = part(5, {2, 3}, {3, 1});
  refused("/ops/1/in_place/0", "not exactly one operand", with({whole, whole}, {result}, true));
  result.strides = {1, 2};
  refused("/ops/1/in_place/0", "is not laid out as the result", with({whole}, {result}, true));
}

TEST_CASE("the builder refuses a made tensor that stays, or whose home is the host") {
  refused("/tensors/4/stays", "its caller does not hold it", [](auto& b) {
    Tensor tensor = sized(1);
    tensor.stays = true;
    b.add_tensor(std::move(tensor));
    b.add_op(timed(1), OpLinks{{}, {4}, {}, {}});
  });
  refused("/tensors/4/home", "an op produces it", [](auto& b) {
    Tensor tensor = sized(1);
    tensor.home = Home::host;
    b.add_tensor(std::move(tensor));
    b.add_op(timed(1), OpLinks{{}, {4}, {}, {}});
  });
}

TEST_CASE("the builder refuses repeated outputs and several producers") {
  refused("/ops/1/outputs/1", "op 1 lists tensor 2 twice as output", [](auto& b) {
    b.add_op(timed(1), OpLinks{{}, {2, 2}, {}, {}});
  });
  refused("/ops/1/outputs/0", "tensor 1", [](auto& b) {
    b.add_op(timed(1), OpLinks{{}, {1}, {}, {}});
  });
  refused("/outputs/1", "tensor 1 is listed twice as graph output", [](auto& b) {
    b.set_outputs({1, 1});
  });
}

TEST_CASE("the builder refuses an op that makes its own input, and cycles of every kind") {
  refused("/ops/1", "op 1 makes one of its own inputs, tensor 2", [](auto& b) {
    b.add_op(timed(1), OpLinks{{2}, {2}, {}, {}});
  });
  refused("/ops/1", "cycle: ", [](auto& b) {
    b.add_op(timed(1, "g"), OpLinks{{3}, {2}, {}, {}});
    b.add_op(timed(1, "h"), OpLinks{{2}, {3}, {}, {}});
  });
  refused("/ops/1", "op 1", [](auto& b) { b.add_op(timed(1), OpLinks{{}, {2}, {1}, {}}); });
  // Op 2 reads what op 1 changes, hence comes before it, and is to come after it.
  refused("/ops/1", "cycle: ", [](auto& b) {
    b.add_op(timed(1), OpLinks{{0}, {}, {}, {0}});
    b.add_op(timed(1), OpLinks{{0}, {2}, {1}, {}});
  });
}

TEST_CASE("the builder refuses two ops that change one tensor") {
  refused("/ops/2/mutates/0", "op 2 and op 1 both mutate tensor 0 \"x\"", [](auto& b) {
    b.add_op(timed(1), OpLinks{{0}, {}, {}, {0}});
    b.add_op(timed(1), OpLinks{{0}, {}, {}, {0}});
  });
  refused("/ops/1/mutates/0", "op 1 mutates tensor 0 \"x\", which is not among its inputs",
          [](auto& b) {
            b.add_op(timed(1), OpLinks{{1}, {}, {}, {0}});
          });
}

TEST_CASE("the builder refuses invalid orders") {
  const auto two = [](GraphBuilder& b) { b.add_op(timed(1, "g"), OpLinks{{1}, {2}, {}, {}}); };
  refused("/order/0", "op 1 \"g\" stands before op 0 \"f\"", [&](auto& b) {
    two(b);
    b.set_order({1, 0});
  });
  refused("/order/1", "op 0 \"f\" is listed twice", [&](auto& b) {
    two(b);
    b.set_order({0, 0});
  });
  refused("/order", "1 of 2 ops", [&](auto& b) {
    two(b);
    b.set_order({0});
  });
  refused("/ops", "list the ops in order", [](auto& b) {
    b.add_op(timed(1), OpLinks{{3}, {2}, {}, {}});
    b.add_op(timed(1), OpLinks{{}, {3}, {}, {}});
  });
}

TEST_CASE("the builder refuses negative numbers and sums beyond 2^63") {
  refused("/tensors/4/bytes", "negative", [](auto& b) { b.add_tensor(sized(-1)); });
  refused("/ops/1/time", "negative", [](auto& b) { b.add_op(timed(-1), OpLinks{}); });
  refused("/ops/1/workspace", "negative", [](auto& b) {
    Op op;
    op.workspace = Bytes(-1);
    b.add_op(op, OpLinks{});
  });
  refused("/resident_bytes", "negative", [](auto& b) { b.set_resident(Bytes(-1)); });
  refused("/tensors/4/bytes",
          "tensor 4: bytes 9223372036854775807: the bytes of the graph add up to 2^63",
          [](auto& b) { b.add_tensor(sized(kHuge)); });
  refused("/ops/1/time", "times of the graph add up to 2^63",
          [](auto& b) { b.add_op(timed(kHuge), OpLinks{}); });
  refused("/ops/1/workspace", "2^63", [](auto& b) {
    Op op;
    op.workspace = Bytes(kHuge);
    b.add_op(op, OpLinks{});
  });
}

TEST_CASE("links are those that the builder was given, each once") {
  GraphBuilder builder;
  for (int i = 0; i < 4; ++i) builder.add_tensor(sized(1 << i));
  builder.add_op(timed(3, "f"), OpLinks{{0, 0}, {1, 2}, {}, {}});
  builder.add_op(timed(4), OpLinks{{2, 0, 2}, {3}, {0, 0}, {0}});
  builder.set_outputs({3});
  builder.set_resident(Bytes(100));
  const Graph graph = builder.build();
  const OpId f(0), g(1);
  CHECK(graph.inputs(f).size() == 1);
  CHECK(graph.inputs(g).size() == 2);
  CHECK(graph.outputs(f).size() == 2);
  CHECK(graph.after(g).size() == 1);
  CHECK(graph.producer(TensorId(2)) == f);
  CHECK_FALSE(graph.producer(TensorId(0)).valid());
  CHECK(graph.consumers(TensorId(0)).size() == 2);
  CHECK(graph.predecessors(g).size() == 1);
  CHECK(graph.successors(f).size() == 1);
  CHECK(graph.recomputable(f));
  CHECK_FALSE(graph.recomputable(g));
  CHECK(graph.is_output(TensorId(3)));
  CHECK_FALSE(graph.is_output(TensorId(1)));
  CHECK(graph.total_time() == Ticks(7));
  CHECK(graph.input_bytes() == Bytes(1));
  CHECK(graph.resident() == Bytes(100));
  CHECK(graph.label(f) == "op 0 \"f\"");
  CHECK(graph.label(TensorId(1)) == "tensor 1");
}

TEST_CASE("readers of a tensor come before the op that changes it") {
  GraphBuilder builder;
  for (int i = 0; i < 3; ++i) builder.add_tensor(sized(1));
  builder.add_op(timed(1), OpLinks{{0}, {}, {}, {0}});
  builder.add_op(timed(1), OpLinks{{0}, {1}, {}, {}});
  builder.add_op(timed(1), OpLinks{{0}, {2}, {}, {}});
  builder.set_order({2, 1, 0});
  const Graph graph = builder.build();
  CHECK(graph.predecessors(OpId(0)).size() == 2);
  CHECK(graph.successors(OpId(1)).front() == OpId(0));
  CHECK(graph.position(OpId(0)) == 2);
}

TEST_CASE("an empty graph, and a builder that is empty after building") {
  GraphBuilder builder;
  builder.add_tensor(sized(5));
  CHECK(builder.build().tensor_count() == 1);
  const Graph graph = builder.build();
  CHECK(graph.tensor_count() == 0);
  CHECK(graph.op_count() == 0);
  CHECK(graph.order().empty());
  CHECK(graph.total_time() == Ticks(0));
}

TEST_CASE("predecessors and successors mirror each other on random graphs") {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const Graph graph = random_graph(random);
    std::size_t down = 0, up = 0;
    for (std::size_t k = 0; k < graph.op_count(); ++k) {
      const OpId op(k);
      down += graph.successors(op).size();
      for (OpId before : graph.predecessors(op)) {
        ++up;
        const auto after = graph.successors(before);
        REQUIRE(std::count(after.begin(), after.end(), op) == 1);
        REQUIRE(graph.position(before) < graph.position(op));
      }
    }
    REQUIRE(down == up);
  }
}

TEST_CASE("a cycle of 200,000 ops is named without listing them all") {
  GraphBuilder builder;
  const std::int64_t n = sanitized(20'000, 200'000);
  for (std::int64_t i = 0; i < n; ++i) builder.add_tensor(sized(1));
  for (std::int64_t i = 0; i < n; ++i)
    builder.add_op(timed(1), OpLinks{{(i + n - 1) % n}, {i}, {}, {}});
  try {
    builder.build();
    FAIL("built a cycle");
  } catch (const InputError& error) {
    CHECK(error.reason().size() < 400);
  }
}

}  // namespace lowtide
