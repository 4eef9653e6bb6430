// How axes spread over ops, and where they must not.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/ops/dimensions/follow.h"
#include "lowtide/ops/dimensions/rule.h"

#include "support/net.h"
#include "support/scale.h"

namespace lowtide::dimensions {
namespace {

using test::Extents;
using test::integers;
using test::Net;

Operand all(std::string argument, TensorId tensor, const Extents& shape) {
  return Net::all(std::move(argument), tensor, shape);
}

Argument integer(std::string name, std::int64_t value) { return {std::move(name), {value}}; }

State state(const Reach& reach, TensorId tensor) { return reach.tensors[tensor.index()].state; }

std::string stop(const Graph& graph, const Reach& reach, TensorId made) {
  const auto& stop = reach.stops[graph.producer(made).index()];
  return stop ? stop->reason : "";
}

bool carries(const Graph& graph, const Reach& reach, TensorId made) {
  return reach.carries[graph.producer(made).index()].has_value();
}

TEST_CASE("dimensions: a linear layer and its gradients, over the batch") {
  Net net;
  const TensorId x = net.input({6, 4}), w = net.input({4, 5}), g = net.input({6, 5});
  const TensorId y = net.op("aten.mm", {all("self", x, {6, 4}), all("mat2", w, {4, 5})}, {6, 5});
  const TensorId gy = net.op("aten.mul", {all("self", y, {6, 5}), all("other", g, {6, 5})}, {6, 5});
  const TensorId gw =
      net.op("aten.mm", {Net::view("self", x, {4, 6}, {1, 4}), all("mat2", gy, {6, 5})}, {4, 5});
  const TensorId gx =
      net.op("aten.mm", {all("self", gy, {6, 5}), Net::view("mat2", w, {5, 4}, {1, 5})}, {6, 4});
  const TensorId half = net.op("aten.mul", {all("self", gw, {4, 5})}, {4, 5});
  const Graph graph = net.build();
  const Seed seed{x, 0};
  const Reach reach = follow(graph, {&seed, 1});
  for (const TensorId tensor : {x, y, g, gy, gx}) CHECK(state(reach, tensor) == State::split);
  CHECK(state(reach, w) == State::whole);
  for (const TensorId tensor : {gw, half}) CHECK(state(reach, tensor) == State::partial);
  CHECK(reach.tensors[y.index()].axis == Axis{6, 20});
  for (const TensorId tensor : {y, gy, gw, gx, half}) CHECK(carries(graph, reach, tensor));
  // From a result it is the same.
  const Seed last{gx, 0};
  CHECK(follow(graph, {&last, 1}).tensors == reach.tensors);
}

TEST_CASE("dimensions: only ops of the region carry the axis, other ops read joined tensors") {
  Net net;
  const TensorId x = net.input({6, 4});
  const TensorId a = net.op("aten.relu", {all("self", x, {6, 4})}, {6, 4});
  const TensorId b = net.op("aten.relu", {all("self", a, {6, 4})}, {6, 4});
  const TensorId c =
      net.op("aten.flip", {all("self", b, {6, 4})}, {6, 4}, {{"dims", integers({0})}});
  const Graph graph = net.build();
  const Seed seed{a, 0};
  const OpId region[] = {graph.producer(b)};
  const Reach reach = follow(graph, {&seed, 1}, region);
  CHECK(carries(graph, reach, b));
  CHECK_FALSE(carries(graph, reach, a));
  CHECK(stop(graph, reach, c) == "");
  CHECK(state(reach, x) == State::whole);
}

TEST_CASE("dimensions: an op that keeps the shape but mixes slices is refused") {
  struct Trap {
    const char* kind;
    Argument argument;
    const char* reason;
  };
  const Trap traps[] = {
      {"aten.cumsum", integer("dim", 0), "accumulates along dimension 0 of \"self\""},
      {"aten._softmax", integer("dim", 0), "normalizes over dimension 0 of \"self\""},
      {"aten._softmax", integer("dim", -2), "normalizes over dimension 0 of \"self\""},
      {"aten.flip", {"dims", integers({0})}, "reverses dimension 0 of \"self\""},
      {"aten.sort", integer("dim", 0), "sorts along dimension 0 of \"self\""},
      {"aten.roll", {"dims", integers({})}, "rotates dimension 0 of \"self\""},
      {"aten.bernoulli", integer("seed", 0), "draws random numbers along dimension 0 of \"self\""},
      {"aten.mine", integer("dim", 1), "is of a kind without a rule, aten.mine"},
      {"", integer("dim", 1), "has no kind"},
  };
  for (const Trap& trap : traps) {
    CAPTURE(trap.kind);
    Net net;
    const TensorId x = net.input({6, 4});
    const TensorId y = net.op(trap.kind, {all("self", x, {6, 4})}, {6, 4}, {trap.argument});
    const TensorId z = net.op("aten.relu", {all("self", y, {6, 4})}, {6, 4});
    const Graph graph = net.build();
    const Seed seed{x, 0};
    const Reach reach = follow(graph, {&seed, 1});
    CHECK(stop(graph, reach, y) == trap.reason);
    CHECK(state(reach, z) == State::whole);
  }
}

TEST_CASE("dimensions: a cluster states its letters, and one that states none stops the axis") {
  const auto reached = [](const std::string& letters, auto&& then) {
    Net net;
    const TensorId x = net.input({6, 4});
    const TensorId y = net.op("lowtide.cluster", {all("given", x, {6, 4})}, {6, 4},
                              {{"letters", Literal{letters}}});
    const Graph graph = net.build();
    const Seed seed{x, 0};
    then(graph, follow(graph, {&seed, 1}), y);
  };
  reached("ab->ab", [](const Graph&, const Reach& reach, TensorId y) {
    CHECK(state(reach, y) == State::split);
  });
  reached("a.->..", [](const Graph&, const Reach& reach, TensorId y) {
    CHECK(state(reach, y) == State::partial);
  });
  for (const char* const text : {"", ".a->.a", "ab", "ab->a", "ab,->ab", "ab->ab,", "ab->ba"})
    reached(text, [](const Graph& graph, const Reach& reach, TensorId y) {
      CHECK(stop(graph, reach, y) == "is one kernel that takes all of dimension 0 of \"given\"");
    });
}

TEST_CASE("dimensions: a product of a batch with itself stops the axis") {
  Net net;
  const TensorId x = net.input({6, 4});
  const TensorId z = net.op("aten.relu", {all("self", x, {6, 4})}, {6, 4});
  const TensorId s =
      net.op("aten.mm", {all("self", z, {6, 4}), Net::view("mat2", z, {4, 6}, {1, 4})}, {6, 6});
  const Graph graph = net.build();
  const Seed seed{x, 0};
  const Reach reach = follow(graph, {&seed, 1});
  CHECK(stop(graph, reach, s) ==
        "sees the axis along dimensions that do not go together: dimension 0 of \"self\", "
        "dimension 1 of \"mat2\"");
}

TEST_CASE("dimensions: rows of an input may be combined with the whole input") {
  Net net;
  const TensorId x = net.input({6, 4});
  const TensorId s =
      net.op("aten.mm", {all("self", x, {6, 4}), Net::view("mat2", x, {4, 6}, {1, 4})}, {6, 6});
  const Graph graph = net.build();
  const Seed seed{x, 0};
  const Reach reach = follow(graph, {&seed, 1});
  REQUIRE(carries(graph, reach, s));
  CHECK(reach.carries[0]->operands[0].state == State::split);
  CHECK(reach.carries[0]->operands[1].state == State::whole);
}

TEST_CASE("dimensions: dropping the last tokens is a crop of their axis") {
  Net net;
  const TensorId h = net.input({4, 9, 5}), w = net.input({5, 7});
  const TensorId y = net.op("aten.mm", {all("self", h, {36, 5}), all("mat2", w, {5, 7})}, {36, 7});
  const TensorId z = net.op("aten.clone", {Net::view("self", y, {4, 8, 7}, {63, 7, 1})}, {4, 8, 7});
  const TensorId few =
      net.op("aten.clone", {Net::view("self", y, {4, 5, 7}, {63, 7, 1})}, {4, 5, 7});
  const TensorId gy = net.op("aten.slice_backward", {all("grad_output", z, {4, 8, 7})}, {4, 9, 7},
                             {{"input_sizes", integers({4, 9, 7})},
                              integer("dim", 1),
                              integer("start", 0),
                              integer("end", 8),
                              integer("step", 1)});
  const Graph graph = net.build();
  const Seed batch{h, 0}, tokens{h, 1}, from_crop{z, 1};
  CHECK(carries(graph, follow(graph, {&batch, 1}), z));
  const Reach reach = follow(graph, {&tokens, 1});
  REQUIRE(carries(graph, reach, z));
  REQUIRE(carries(graph, reach, gy));
  CHECK(reach.tensors[z.index()].axis == Axis{8, 28});
  CHECK(reach.tensors[gy.index()].axis == Axis{9, 28});
  for (const TensorId tensor : {h, y, z, gy}) CHECK(reach.tensors[tensor.index()].longest == 9);
  const Carry& crop = *reach.carries[graph.producer(z).index()];
  CHECK(crop.operands[0].position == Position{1, 1, 8});
  CHECK(crop.extent == 8);
  CHECK(crop.longest == 9);
  // Cut into two, one of both would have nothing left.
  CHECK(stop(graph, reach, few) == "takes other slices of \"self\" than all: 5 from number 0 of 9");
  // A part is so many of the nine, and of the eight those that there are.
  const Op& pad = graph.op(graph.producer(gy));
  const Carry& padded = *reach.carries[graph.producer(gy).index()];
  CHECK(part_arguments(pad, padded, {5, 4})[0] == Argument{"input_sizes", integers({4, 4, 7})});
  CHECK(part_arguments(pad, padded, {5, 4})[3] == integer("end", 3));
  CHECK(part_arguments(pad, padded, {0, 5})[3] == integer("end", 5));
  const Operand seen = in_part(graph.op(graph.producer(z)).operands[0], {1, 1, 8}, {9, 28}, {5, 4});
  CHECK(seen.shape == Extents{4, 3, 7});
  CHECK(seen.strides == Extents{28, 7, 1});
  // From the crop on, the axis of the longer is found.
  const Reach back = follow(graph, {&from_crop, 1});
  CHECK(back.tensors == reach.tensors);
}

TEST_CASE("dimensions: rows that are no slices of a storage are read from the whole tensor") {
  Net net;
  const TensorId h = net.input({9, 5}), w = net.input({5, 7});
  const TensorId y = net.op("aten.mm", {all("self", h, {9, 5}), all("mat2", w, {5, 7})}, {9, 7});
  const TensorId z = net.op("aten.clone", {Net::view("self", y, {8, 7}, {7, 1}, 7)}, {8, 7});
  const TensorId s = net.op("aten._softmax", {all("self", z, {8, 7})}, {8, 7}, {integer("dim", 1)});
  const Graph graph = net.build();
  const Seed seed{s, 0};
  const Reach reach = follow(graph, {&seed, 1});
  REQUIRE(carries(graph, reach, z));
  const Carry& carry = *reach.carries[graph.producer(z).index()];
  CHECK(carry.operands[0].from_whole);
  CHECK(state(reach, y) == State::whole);
  CHECK(stop(graph, reach, y) ==
        "makes a tensor of which slices are read that its storage does not have");
  const Operand& operand = graph.op(graph.producer(z)).operands[0];
  const auto rows = in_whole(operand, *carry.operands[0].position, {2, 3});
  REQUIRE(rows.has_value());
  CHECK(rows->shape == Extents{3, 7});
  CHECK(rows->offset == 21);
}

TEST_CASE("dimensions: attention over positions needs all of its keys") {
  Net net;
  const TensorId x = net.input({3, 6, 4});
  const TensorId q = net.op("aten.relu", {all("self", x, {3, 6, 4})}, {3, 6, 4});
  const TensorId k = net.op("aten.tanh", {all("self", x, {3, 6, 4})}, {3, 6, 4});
  const TensorId s =
      net.op("aten.bmm", {all("self", q, {3, 6, 4}), Net::view("mat2", k, {3, 4, 6}, {24, 1, 4})},
             {3, 6, 6});
  const Graph graph = net.build();
  const Seed positions{x, 1}, batch{x, 0}, features{x, 2};
  CHECK(stop(graph, follow(graph, {&positions, 1}), s) != "");
  CHECK(carries(graph, follow(graph, {&batch, 1}), s));
  const Reach reach = follow(graph, {&features, 1});
  CHECK(state(reach, s) == State::partial);
}

TEST_CASE("dimensions: partial sums pass linear ops and stop at others") {
  Net net;
  const TensorId x = net.input({6, 4}), w = net.input({4});
  const Argument over{"dim", integers({0})};
  const TensorId a = net.op("aten.sum", {all("self", x, {6, 4})}, {4}, {over});
  const TensorId b = net.op("aten.neg", {all("self", a, {4})}, {4});
  const TensorId c = net.op("aten.add", {all("self", a, {4}), all("other", b, {4})}, {4});
  const TensorId d = net.op("aten.mul", {all("self", w, {4}), all("other", c, {4})}, {4});
  const TensorId e = net.op("aten.add", {all("self", d, {4}), all("other", w, {4})}, {4});
  const TensorId f = net.op("aten.mul", {all("self", d, {4}), all("other", d, {4})}, {4});
  const TensorId g = net.op("aten.mean", {all("self", x, {6, 4})}, {4}, {over});
  const Graph graph = net.build();
  const Seed seed{x, 0};
  const Reach reach = follow(graph, {&seed, 1});
  for (const TensorId tensor : {a, b, c, d, g}) CHECK(state(reach, tensor) == State::partial);
  for (const TensorId tensor : {e, f})
    CHECK(stop(graph, reach, tensor) == "reads a sum over the axis that is still to be made");
  CHECK(reach.carries[graph.producer(g).index()]->weight == Weight::share);
}

TEST_CASE("dimensions: random draws run before the parts and depend on none of them") {
  Net net;
  const TensorId x = net.input({6, 4});
  const TensorId h = net.op("aten.relu", {all("self", x, {6, 4})}, {6, 4});
  const TensorId m = net.op("lowtide.dropout_mask", {all("input", h, {6, 4})}, {6, 4});
  const TensorId y =
      net.op("lowtide.dropout_apply", {all("input", h, {6, 4}), all("mask", m, {6, 4})}, {6, 4});
  const Graph graph = net.build();
  const Seed seed{x, 0};
  const Reach reach = follow(graph, {&seed, 1});
  for (const TensorId tensor : {h, m, y}) CHECK(carries(graph, reach, tensor));
  CHECK(reach.carries[graph.producer(m).index()]->before);
  CHECK_FALSE(reach.carries[graph.producer(y).index()]->before);
}

TEST_CASE("dimensions: valid targets are counted before the parts") {
  Net net;
  const TensorId x = net.input({6, 4}), t = net.input({6});
  Operand target = all("target", t, {6});
  const auto made = net.ops("aten.nll_loss_forward", {all("self", x, {6, 4}), target}, {{}, {}},
                            {integer("reduction", 1)});
  const TensorId g = net.op("aten.nll_loss_backward",
                            {all("grad_output", made[0], {}), all("self", x, {6, 4}), target,
                             all("total_weight", made[1], {})},
                            {6, 4}, {integer("reduction", 1)});
  const TensorId seeded = net.op("aten.nll_loss_backward",
                                 {all("grad_output", net.input({}), {}), all("self", x, {6, 4}),
                                  target, all("total_weight", made[1], {})},
                                 {6, 4}, {integer("reduction", 1)});
  const Graph graph = net.build();
  const Seed seed{x, 0};
  const Reach reach = follow(graph, {&seed, 1});
  const Carry& loss = *reach.carries[0];
  CHECK(loss.weight == Weight::total);
  CHECK(loss.results[0].state == State::partial);
  CHECK(loss.results[1].before);
  CHECK(part_arguments(graph.op(OpId(0)), loss, {0, 2}) == std::vector{integer("reduction", 2)});
  CHECK(carries(graph, reach, seeded));
  // The loss itself is there only when all parts have run.
  CHECK(stop(graph, reach, g) ==
        "reads a sum over the axis that is still to be made, \"grad_output\"");
}

TEST_CASE("dimensions: sizes among the arguments are adjusted") {
  Net net;
  const TensorId x = net.input({6, 4});
  const TensorId z =
      net.op("aten.new_zeros", {all("self", x, {6, 4})}, {6, 5}, {{"size", integers({6, 5})}});
  const TensorId y = net.op("aten.cat",
                            {Operand{"tensors", 0, x, {6, 4}, {4, 1}, 0, "f32"},
                             Operand{"tensors", 1, z, {6, 5}, {5, 1}, 0, "f32"}},
                            {6, 9}, {integer("dim", 1)});
  const Graph graph = net.build();
  const Seed seed{x, 0};
  const Reach reach = follow(graph, {&seed, 1});
  REQUIRE(carries(graph, reach, y));
  REQUIRE(carries(graph, reach, z));
  const auto arguments = part_arguments(graph.op(OpId(0)), *reach.carries[0], {0, 2});
  CHECK(arguments == std::vector{Argument{"size", integers({2, 5})}});
}

TEST_CASE("dimensions: an op that mutates its operand stops the axis") {
  GraphBuilder builder;
  Tensor tensor;
  tensor.bytes = Bytes(24);
  tensor.shape = {6};
  tensor.dtype = "f32";
  const TensorId x = builder.add_tensor(tensor);
  Op op;
  op.kind = "aten.relu";
  op.operands = {all("self", x, {6})};
  OpLinks links;
  links.inputs = links.mutates = {0};
  builder.add_op(op, links);
  const Graph graph = builder.build();
  const Seed seed{x, 0};
  CHECK(follow(graph, {&seed, 1}).stops[0]->reason == "changes its operand in place");
}

TEST_CASE("dimensions: axes that do not exist are refused") {
  Net net;
  const TensorId x = net.input({6, 1}, "x"), s = net.input({}, "s");
  const Graph graph = net.build();
  const auto reason = [&](TensorId tensor, std::int64_t dim) -> std::string {
    const Seed seed{tensor, dim};
    try {
      follow(graph, {&seed, 1});
    } catch (const InputError& error) {
      return error.place() + " " + error.reason();
    }
    return "";
  };
  CHECK(reason(x, 0) == "");
  CHECK(reason(x, 1) == "tensor 0 \"x\" has 1 along dimension 1; an axis has two slices or more");
  CHECK(reason(x, 2) == "tensor 0 \"x\" has no dimension 2; it has 2, counted from 0");
  CHECK(reason(x, -1) == "tensor 0 \"x\" has no dimension -1; it has 2, counted from 0");
  CHECK(reason(s, 0) ==
        "tensor 1 \"s\" has no dimensions: its \"shape\" is empty, or the graph does not say it");
}

TEST_CASE("dimensions: two axes on one tensor") {
  Net net;
  const TensorId x = net.input({6, 4});
  net.op("aten.relu", {all("self", x, {6, 4})}, {6, 4});
  const Graph graph = net.build();
  const Seed seeds[] = {{x, 0}, {x, 1}};
  CHECK_THROWS_AS(follow(graph, seeds), InputError);
}

// Every kind with operands and arguments that need not fit: rules say nothing about what is not
// there, and what follows is sound enough to be asked again.
TEST_CASE("dimensions: no rule fails on operands that do not fit the kind") {
  const char* const names[] = {
      "self",    "other", "mat1",  "mat2",   "input",  "weight",      "bias",
      "indices", "index", "src",   "values", "target", "grad_output", "tensors",
      "query",   "key",   "value", "mean",   "rstd",   "grad_out",    "total_weight",
      "x1",      "x2",    "mask",  "vec",    "out",    "logsumexp"};
  const char* const literals[] = {"dim",        "dims",       "reduction", "groups",
                                  "transposed", "pad",        "repeats",   "normalized_shape",
                                  "dropout_p",  "is_causal",  "size",      "input_sizes",
                                  "N",          "bias_sizes", "keepdim",   "train"};
  Random random(3);
  const auto number = [&] { return static_cast<std::int64_t>(random.below(9)) - 3; };
  const auto shape = [&] {
    Extents extents(random.below(5));
    for (std::int64_t& extent : extents) extent = static_cast<std::int64_t>(random.below(4));
    return extents;
  };
  for (const std::string_view kind : known_kinds())
    for (int round = 0; round < sanitized(15, 60); ++round) {
      Net net;
      std::vector<Operand> operands;
      std::vector<TensorId> tensors;
      for (std::size_t n = random.below(5); n-- > 0;) {
        const Extents extents = shape();
        tensors.push_back(net.input(extents));
        operands.push_back(all(names[random.below(std::size(names))], tensors.back(), extents));
        operands.back().index = random.below(3) == 0 ? number() : -1;
        operands.back().index = std::max<std::int64_t>(operands.back().index, -1);
      }
      std::vector<Argument> arguments;
      for (const char* const name : literals) {
        if (random.below(2) == 0) continue;
        Literal value{number()};
        if (random.below(3) == 0) value = integers({number(), number()});
        if (random.below(4) == 0) value = Literal{random.below(2) == 0};
        arguments.push_back({name, value});
      }
      std::vector<Extents> made(1 + random.below(3));
      for (Extents& extents : made)
        extents = operands.empty() || random.below(2) == 0 ? shape() : operands[0].shape;
      const auto results = net.ops(std::string(kind), operands, made, arguments);
      tensors.insert(tensors.end(), results.begin(), results.end());
      const Graph graph = net.build();
      for (const TensorId tensor : tensors)
        for (std::size_t d = 0; d < graph.tensor(tensor).shape.size(); ++d) {
          const Seed seed{tensor, static_cast<std::int64_t>(d)};
          if (graph.tensor(tensor).shape[d] < 2 || graph.bytes(tensor) == Bytes(0)) continue;
          const Reach reach = follow(graph, {&seed, 1});
          if (!reach.carries[0]) continue;
          const Carry& carry = *reach.carries[0];
          part_arguments(graph.op(OpId(0)), carry, {0, 1});
          CHECK(carry.operands.size() == operands.size());
        }
    }
}

}  // namespace
}  // namespace lowtide::dimensions
