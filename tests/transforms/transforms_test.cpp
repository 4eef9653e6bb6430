// What transforms make, and which are refused.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/random.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/transforms/apply.h"

#include "oracles/classifier_in_parts.h"
#include "support/network.h"
#include "support/sketch.h"

namespace lowtide {
namespace {

// x [6, 4] -> relu -> a [6, 4] -> relu -> b [6, 4], which is kept.
Graph two_relus() {
  Network net;
  const auto x = net.tensor({6, 4}), a = net.tensor({6, 4}), b = net.tensor({6, 4});
  net.op("aten.relu", {net.whole("self", x)}, {a});
  net.op("aten.relu", {net.whole("self", a)}, {b});
  net.keep(b);
  return net.graph();
}

Split split_of_both(std::int64_t parts) {
  Split split;
  split.ops = {OpId(0), OpId(1)};
  split.parts = parts;
  split.axes = {{TensorId(0), 0}};
  split.prices = {{{OpId(0), Ticks(7), Bytes(1)}, {OpId(1), Ticks(8), Bytes(2)}}};
  split.joins = {{TensorId(2), Ticks(3), Bytes(4)}};
  return split;
}

TransformedGraph made(const Graph& graph, const Transform& transform) {
  return apply_transforms(graph, std::vector<Transform>{transform});
}

std::string refusal(const Graph& graph, const std::vector<Transform>& transforms) {
  try {
    apply_transforms(graph, transforms);
  } catch (const TransformRefused& error) {
    return error.what();
  } catch (const InputError& error) {
    return "bad input: " + std::string(error.what());
  }
  return "done";
}

void refused(const Graph& graph, const Transform& transform, const std::string& words) {
  const std::string found = refusal(graph, {transform});
  CAPTURE(found);
  CHECK(found.find(words) != std::string::npos);
}

std::vector<std::size_t> indices(std::span<const TensorId> ids) {
  std::vector<std::size_t> found;
  for (const TensorId id : ids) found.push_back(id.index());
  return found;
}

TEST_CASE("transforms: a split runs every op on slices and joins the outputs") {
  const TransformedGraph found = made(two_relus(), split_of_both(2));
  const Graph& graph = found.graph;
  // New indices follow in the given order; those of both ops and of the tensor between are gone.
  CHECK(found.ops.size() == 8);
  CHECK_FALSE(found.ops[0].valid());
  CHECK_FALSE(found.ops[1].valid());
  CHECK_FALSE(found.tensors[1].valid());
  REQUIRE(graph.op_count() == 6);
  REQUIRE(graph.tensor_count() == 7);
  std::vector<std::string> names, kinds;
  for (const OpId op : graph.order()) {
    names.push_back(graph.op(op).name);
    kinds.push_back(graph.op(op).kind);
  }
  CHECK(names == std::vector<std::string>{"relu_0[1/2]", "relu_1[1/2]", "join t2[1/2]",
                                          "relu_0[2/2]", "relu_1[2/2]", "join t2[2/2]"});
  CHECK(kinds[2] == "lowtide.join");
  CHECK(std::ranges::is_sorted(graph.order()));
  CHECK(graph.total_time() == Ticks(2 * (7 + 8 + 3)));

  const OpId first(0), second(1), join(2), last(5);
  CHECK(indices(graph.inputs(first)) == std::vector<std::size_t>{0});
  const Operand& read = graph.op(OpId(3)).operands.front();
  CHECK(read.shape == std::vector<std::int64_t>{3, 4});
  CHECK(read.offset == 12);
  CHECK(graph.workspace(second) == Bytes(2));
  const TensorId part = graph.outputs(second).front();
  CHECK(graph.bytes(part) == Bytes(48));
  CHECK(graph.tensor(part).shape == std::vector<std::int64_t>{3, 4});
  CHECK(graph.bytes(graph.outputs(join).front()) == Bytes(96));
  CHECK(graph.workspace(join) == Bytes(4));
  // The chain of joins writes in place, and its end is the original.
  REQUIRE(graph.overwrites(last).size() == 1);
  CHECK(graph.overwrites(last).front().input == graph.outputs(join).front());
  CHECK(found.tensor_index[graph.outputs(last).front()] == TensorId(2));
  CHECK(graph.is_output(graph.outputs(last).front()));
  CHECK(found.parts[last] == std::vector<PartOf>{{0, 1}});
}

TEST_CASE("transforms: the last part may be shorter, and have prices of its own") {
  Split split = split_of_both(2);
  split.ops = {OpId(0)};
  split.prices = {{{OpId(0), Ticks(7), Bytes(0)}}, {{OpId(0), Ticks(5), Bytes(0)}}};
  split.joins = {{TensorId(1), Ticks(1), Bytes(0)}};
  Network net;
  const auto x = net.tensor({5, 4}), a = net.tensor({5, 4});
  net.op("aten.relu", {net.whole("self", x)}, {a});
  net.keep(a);
  const Graph graph = made(net.graph(), split).graph;
  CHECK(graph.time(OpId(0)) == Ticks(7));
  CHECK(graph.bytes(graph.outputs(OpId(0)).front()) == Bytes(48));
  CHECK(graph.time(OpId(2)) == Ticks(5));
  CHECK(graph.bytes(graph.outputs(OpId(2)).front()) == Bytes(32));
  CHECK(graph.op(OpId(2)).operands.front().offset == 12);
}

TEST_CASE("transforms: a split of a whole step equals the graph written by hand") {
  Random random(20261123);
  for (int round = 0; round < 60; ++round) {
    Classifier classifier = Classifier::random(random);
    classifier.barrier = true;
    const std::int64_t parts = random.between(2, 4);
    const std::int64_t most = (classifier.batch + parts - 1) / parts;
    if (classifier.batch - (parts - 1) * most < 2) continue;
    CAPTURE(classifier.batch);
    CAPTURE(parts);
    const Graph graph = step_of(classifier);
    std::vector<Transform> transforms{hoist_of(graph)};
    const TransformedGraph hoisted = apply_transforms(graph, transforms);
    transforms.emplace_back(split_along(hoisted, {{TensorId(0), 0}}, parts));
    const Graph found = apply_transforms(graph, transforms).graph;
    const Graph expected = classifier_in_parts(classifier, parts);
    REQUIRE(found.op_count() == expected.op_count());
    REQUIRE(found.tensor_count() == expected.tensor_count());
    CHECK(found.total_time() == expected.total_time());
    // The same ops in the same order: what each reads, makes and may overwrite, in bytes.
    for (std::size_t i = 0; i < found.op_count(); ++i) {
      const OpId a = found.order()[i], b = expected.order()[i];
      CAPTURE(found.op(a).name);
      CHECK(found.time(a) == expected.time(b));
      CHECK(found.workspace(a) == expected.workspace(b));
      CHECK(found.least_workspace(a) == expected.least_workspace(b));
      const auto bytes = [](const Graph& of, std::span<const TensorId> ids) {
        std::vector<Bytes> sizes;
        for (const TensorId id : ids) sizes.push_back(of.bytes(id));
        std::ranges::sort(sizes);
        return sizes;
      };
      CHECK(bytes(found, found.inputs(a)) == bytes(expected, expected.inputs(b)));
      CHECK(bytes(found, found.outputs(a)) == bytes(expected, expected.outputs(b)));
      CHECK(found.recomputable(a) == expected.recomputable(b));
    }
    for (const InPlace in_place : {InPlace::never, InPlace::where_possible}) {
      const Plan ours = plan_from_sequence(found, found.order(), in_place),
                 theirs = plan_from_sequence(expected, expected.order(), in_place);
      REQUIRE(ours.steps.size() == theirs.steps.size());
      for (std::size_t i = 0; i < ours.steps.size(); ++i)
        CHECK(ours.steps[i].kind == theirs.steps[i].kind);
    }
  }
}

TEST_CASE("transforms: half-precision sums are accumulated in single precision and rounded once") {
  for (const std::int64_t parts : {2, 3, 4}) {
    const Graph graph = step_of({.batch = 12, .widths = {4, 8}, .dtype = "bf16"});
    std::vector<Transform> transforms{hoist_of(graph)};
    transforms.emplace_back(
        split_along(apply_transforms(graph, transforms), {{TensorId(0), 0}}, parts));
    const Graph found = apply_transforms(graph, transforms).graph;
    std::int64_t wide = 0;
    for (const TensorId id : AllIds<TensorId>(found.tensor_count()))
      wide += found.tensor(id).dtype == "f32" && found.bytes(id) == Bytes(4 * 8 * 4);
    CHECK(wide == parts - 2);
    for (const TensorId output : found.outputs()) CHECK(found.tensor(output).dtype == "bf16");
  }
}

TEST_CASE("transforms: `after` holds within parts, into the first part and out of all parts") {
  Network net;
  const auto x = net.tensor({4, 2}), a = net.tensor({4, 2}), b = net.tensor({4, 2}),
             c = net.tensor({2}), d = net.tensor({2}), e = net.tensor({2});
  net.op("aten.relu", {net.whole("self", c)}, {d});
  net.op("aten.relu", {net.whole("self", x)}, {a});
  net.after(0);
  net.op("aten.neg", {net.whole("self", x)}, {b});
  net.after(1);
  net.op("aten.relu", {net.whole("self", c)}, {e});
  net.after(2);
  for (const auto kept : {a, b, d, e}) net.keep(kept);
  const Graph graph = net.graph();
  Split split;
  split.ops = {OpId(1), OpId(2)};
  split.axes = {{TensorId(0), 0}};
  split.prices = {{{OpId(1), Ticks(1), Bytes(0)}, {OpId(2), Ticks(1), Bytes(0)}}};
  split.joins = {{TensorId(1), Ticks(1), Bytes(0)}, {TensorId(2), Ticks(1), Bytes(0)}};
  const TransformedGraph found = made(graph, split);
  const auto after = [&](const std::string& name) {
    for (const OpId op : AllIds<OpId>(found.graph.op_count())) {
      if (found.graph.op(op).name != name) continue;
      std::vector<std::string> names;
      for (const OpId earlier : found.graph.after(op))
        names.push_back(found.graph.op(earlier).name);
      return names;
    }
    return std::vector<std::string>{"none of that name"};
  };
  using Names = std::vector<std::string>;
  CHECK(after("relu_1[1/2]") == Names{"relu_0"});
  CHECK(after("relu_1[2/2]") == Names{});
  CHECK(after("neg_2[1/2]") == Names{"relu_1[1/2]"});
  CHECK(after("neg_2[2/2]") == Names{"relu_1[2/2]"});
  CHECK(after("relu_3") == Names{"neg_2[1/2]", "neg_2[2/2]"});
}

TEST_CASE("transforms: components of a region have an axis each") {
  Network net;
  const auto x = net.tensor({6, 2}), y = net.tensor({3, 8}), a = net.tensor({6, 2}),
             b = net.tensor({3, 8});
  net.op("aten.relu", {net.whole("self", x)}, {a});
  net.op("aten.relu", {net.whole("self", y)}, {b});
  net.keep(a);
  net.keep(b);
  const Graph graph = net.graph();
  const TransformedGraph plain = apply_transforms(graph, {});
  const Split split = split_along(plain, {{TensorId(0), 0}, {TensorId(1), 1}}, 2);
  CHECK(split.ops.size() == 2);
  const Graph found = made(graph, split).graph;
  CHECK(found.op_count() == 8);
  CHECK(found.bytes(found.outputs(OpId(0)).front()) == Bytes(24));
  CHECK(found.op(OpId(2)).operands.front().shape == std::vector<std::int64_t>{3, 4});
}

TEST_CASE("transforms: a hoist moves the barrier to the end of the order") {
  const Graph graph = step_of({.batch = 4, .widths = {3, 5}});
  Hoist hoist = hoist_of(graph);
  REQUIRE(hoist.joins.size() == 1);
  hoist.joins[0].time = Ticks(9);
  hoist.joins[0].workspace = Bytes(11);
  const TransformedGraph found = made(graph, hoist);
  const OpId last = found.graph.order().back();
  CHECK(found.graph.is_barrier(last));
  CHECK(found.graph.outputs(last).empty());
  CHECK(found.graph.time(last) == Ticks(9));
  CHECK(found.graph.workspace(last) == Bytes(11));
  CHECK(found.graph.inputs(last).size() == 2);
  const OpId source = found.graph.producer(found.tensors[hoist.tangent.index()]);
  CHECK(found.graph.op(source).kind == "lowtide.tangent");
  CHECK(found.graph.inputs(source).empty());
  CHECK(found.op_index[source] == OpId(graph.op_count()));
  CHECK(found.graph.outputs().size() == graph.outputs().size());
}

TEST_CASE("transforms: hoists that are refused") {
  const Graph graph = step_of({.batch = 4, .widths = {3, 5}});
  Hoist hoist = hoist_of(graph);
  hoist.tangent = TensorId(0);
  refused(graph, hoist, "transforms/0: hoist: tensor 0 \"t0\" is made by no barrier");
  hoist.tangent = TensorId(99);
  refused(graph, hoist, "there is no tensor 99");
  hoist = hoist_of(graph);
  hoist.joins[0].of = TensorId(0);
  refused(graph, hoist, "tensor 0 \"t0\" has a price in \"joins\", but is not a graph output");
  refused(Sketch({1, 1, 1, 1}).op({0}, {1}).op({1}, {2, 3}).barrier().keep({1}).graph(),
          Hoist{TensorId(2), false, {}}, "the barrier makes 2 tensors, not one");
  refused(Sketch({1, 1, 1}).op({0}, {1}).op({1}, {2}).barrier().keep({1}).graph(),
          Hoist{TensorId(2), false, {}}, "tensor 2 is not known to be one element");

  Network net;
  const auto x = net.tensor({4}), loss = net.tensor({}), tangent = net.tensor({}),
             noise = net.tensor({4}), out = net.tensor({4});
  net.op("aten.sum", {net.whole("self", x)}, {loss});
  net.op(std::string(kBarrierKind), {net.whole("", loss)}, {tangent});
  net.op("aten.rand_like", {net.whole("self", x)}, {noise}).recomputable = false;
  net.after(1);
  net.op("aten.mul", {net.whole("self", noise), net.whole("other", tangent)}, {out});
  net.keep(out);
  refused(net.graph(), Hoist{TensorId(2), false, {}},
          "op 2 \"rand_like_2\" draws random numbers behind the barrier");
}

TEST_CASE("transforms: splits that are refused name the op, the dimension and the reason") {
  const Graph graph = two_relus();
  Split split = split_of_both(4);
  refused(graph, split,
          "transforms/0: split: dimension 0 of tensor 0 \"t0\" has 6 slices, which do not go into "
          "4 parts of two or more");
  split = split_of_both(2);
  split.axes = {{TensorId(0), 3}};
  refused(graph, split, "dimension");
  split = split_of_both(2);
  split.ops[1] = OpId(7);
  split.prices[0][1].of = OpId(7);
  refused(graph, split, "there is no op 7; there are 2");
  split = split_of_both(2);
  split.joins.clear();
  refused(
      graph, split,
      "bad input: transforms/0/joins: the price of tensor 2 \"t2\", which is needed outside, is "
      "missing");
  split = split_of_both(2);
  split.joins.push_back({TensorId(1), Ticks(0), Bytes(0)});
  refused(graph, split, "tensor 1 \"t1\" has a price in \"joins\", but is not made in parts");
  split = split_of_both(2);
  split.before = {{OpId(0), Ticks(0), Bytes(0)}};
  refused(graph, split, "op 0 \"relu_0\" has a price in \"before\", but makes nothing once");
  split = split_of_both(2);
  split.prices[0][0].time = Ticks::max();
  refused(graph, split, "add up to 2^63 or more");
  CHECK(refusal(graph, {split_of_both(2), split_of_both(2)}) ==
        "transforms/1: op 0 \"relu_0\" was replaced by transform 0");
  refused(graph, Substitute{"fuse", {OpId(0)}, false, {}}, "substitute: there is no rule \"fuse\"");
  refused(Sketch({4, 4}).op({0}, {1}).keep({1}).graph(),
          Split{{OpId(0)}, 2, {{TensorId(0), 0}}, false, {{{OpId(0), Ticks(1), Bytes(0)}}}, {}, {}},
          "tensor 0");
}

TEST_CASE("transforms: draws before the parts do not affect convexity, in any order") {
  // Two dropouts, each of whose draws comes after the generator's state is taken, which comes after
  // the draw before.
  Network net;
  const auto x = net.tensor({8, 2}, "f32", Role::input);
  auto at = x, drawn = Network::Index{-1};
  for (int layer = 0; layer < 2; ++layer) {
    const auto h = net.tensor({8, 2}), state = net.tensor({16}, "u8"),
               mask = net.tensor({8, 2}, "bool"), out = net.tensor({8, 2});
    net.op("aten.relu", {net.whole("self", at)}, {h});
    net.op("lowtide.random_state", {}, {state}).recomputable = false;
    if (drawn >= 0) net.after(drawn);
    const auto taken = net.latest();
    net.op("lowtide.dropout_mask", {net.whole("input", h)}, {mask}, {{"p", {0.25}}});
    net.after(taken);
    drawn = net.latest();
    net.op("lowtide.dropout_apply", {net.whole("input", h), net.whole("mask", mask)}, {out},
           {{"p", {0.25}}});
    at = out;
  }
  net.keep(at);
  const Graph graph = net.graph();
  Split split;
  split.axes = {{TensorId(0), 0}};
  split.parts = 2;
  auto& prices = split.prices.emplace_back();
  for (const std::size_t op : {0u, 2u, 3u, 4u, 6u, 7u}) {
    split.ops.emplace_back(op);
    prices.push_back({OpId(op), Ticks(1), Bytes(0)});
  }
  split.before = {{OpId(2), Ticks(1), Bytes(0)}, {OpId(6), Ticks(1), Bytes(0)}};
  split.joins = {{TensorId(static_cast<std::size_t>(at)), Ticks(1), Bytes(0)}};
  const TransformedGraph made = apply_transforms(graph, std::vector<Transform>{split});
  std::vector<std::string> kinds;
  for (const OpId op : made.graph.order()) kinds.push_back(made.graph.op(op).kind);
  const std::string state = "lowtide.random_state", mask = "lowtide.dropout_mask",
                    relu = "aten.relu", apply = "lowtide.dropout_apply", join = "lowtide.join";
  CHECK(kinds == std::vector<std::string>{state, mask, state, mask, relu, apply, relu, apply, join,
                                          relu, apply, relu, apply, join});
  for (const OpId op : made.graph.order())
    for (const OpId earlier : made.graph.after(op))
      CHECK(made.graph.position(earlier) < made.graph.position(op));
}

TEST_CASE("transforms: a region must be convex, and every op of it carry the axis") {
  Network net;
  const auto x = net.tensor({4, 2}), a = net.tensor({4, 2}), b = net.tensor({4, 2}),
             c = net.tensor({4, 2}), s = net.tensor({4, 2});
  net.op("aten.relu", {net.whole("self", x)}, {a});
  net.op("aten.cumsum", {net.whole("self", a)}, {b}, {{"dim", {std::int64_t{0}}}});
  net.op("aten.add", {net.whole("self", a), net.whole("other", b)}, {c});
  net.op("aten._softmax", {net.whole("self", x)}, {s}, {{"dim", {std::int64_t{0}}}});
  net.keep(c);
  const Graph graph = net.graph();
  Split split;
  split.axes = {{TensorId(0), 0}};
  split.ops = {OpId(0), OpId(2)};
  split.prices = {{{OpId(0), Ticks(1), Bytes(0)}, {OpId(2), Ticks(1), Bytes(0)}}};
  refused(
      graph, split,
      "the region is not convex: op 1 \"cumsum_1\" is not in it, but comes after one of its ops "
      "and before another");
  split.ops = {OpId(0), OpId(1)};
  split.prices = {{{OpId(0), Ticks(1), Bytes(0)}, {OpId(1), Ticks(1), Bytes(0)}}};
  refused(graph, split, "op 1 \"cumsum_1\"");
  split.ops = {OpId(3)};
  split.prices = {{{OpId(3), Ticks(1), Bytes(0)}}};
  refused(graph, split, "op 3 \"_softmax_3\"");
}

TEST_CASE("transforms: mutating ops, barriers and `exact` over sums are refused") {
  Network net;
  const auto x = net.tensor({4, 2}), w = net.tensor({4, 2}), g = net.tensor({2, 2});
  net.op("aten.mm", {net.transposed("self", x), net.whole("mat2", w)}, {g});
  net.keep(g);
  const Graph graph = net.graph();
  Split split;
  split.ops = {OpId(0)};
  split.axes = {{TensorId(0), 0}};
  split.prices = {{{OpId(0), Ticks(1), Bytes(0)}}};
  split.joins = {{TensorId(2), Ticks(1), Bytes(0)}};
  CHECK(refusal(graph, {split}) == "done");
  split.exact = true;
  refused(graph, split, "\"exact\" is claimed, but tensor 2 \"t2\" is added up over the parts");

  // A mean's gradient divides by the elements of the part.
  Network mean;
  const auto tangent = mean.tensor({}), y = mean.tensor({6, 2}), aim = mean.tensor({6, 2}),
             gy = mean.tensor({6, 2});
  mean.op("aten.mse_loss_backward",
          {mean.whole("grad_output", tangent), mean.whole("self", y), mean.whole("target", aim)},
          {gy}, {{"reduction", {std::int64_t{1}}}});
  mean.keep(gy);
  Split weighted = split;
  weighted.axes = {{TensorId(1), 0}};
  weighted.joins = {{TensorId(3), Ticks(1), Bytes(0)}};
  refused(mean.graph(), weighted, "is weighted by the part's share of the slices");

  const Graph mutating = Sketch({4, 4}).op({0}, {1}).mutates({0}).op({1}, {}).keep({1}).graph();
  split.prices = {{{OpId(0), Ticks(1), Bytes(0)}}};
  refused(mutating, split, "op 0 mutates tensor 0, which is not allowed in a part");
  split.ops = {OpId(1)};
  split.prices = {{{OpId(1), Ticks(1), Bytes(0)}}};
  refused(mutating, split, "op 1 has no output, so it cannot run in parts");
  const Graph step = step_of({.batch = 4, .widths = {3, 5}});
  for (const OpId op : AllIds<OpId>(step.op_count())) {
    if (!step.is_barrier(op)) continue;
    split.ops = {op};
    split.prices = {{{op, Ticks(1), Bytes(0)}}};
    refused(step, split, "is a barrier, which runs once");
  }
}

TEST_CASE("transforms: incomplete transforms are bad input for every graph") {
  const Graph graph = two_relus();
  Split split = split_of_both(2);
  split.prices[0].pop_back();
  refused(graph, split, "bad input: transforms/0/prices: the price of op 1 is missing");
  split = split_of_both(1);
  refused(graph, split, "bad input: transforms/0/parts: must be at least 2");
  split = split_of_both(2);
  split.axes.clear();
  refused(graph, split, "bad input: transforms/0/axes: names no axis");
  split = split_of_both(3);
  split.prices.push_back(split.prices[0]);
  refused(graph, split,
          "has 2 lists of prices; must be one for all parts, or one for each of the 3");
  split = split_of_both(2);
  split.prices[0][0].workspace = Bytes(-1);
  refused(graph, split, "the price of op 0 is negative");
}

TEST_CASE("transforms: plans are converted to the transformed graph and back") {
  const Graph graph = two_relus();
  const std::vector<Transform> transforms{split_of_both(3)};
  const TransformedGraph found = apply_transforms(graph, transforms);
  const Plan plan = plan_from_sequence(found.graph, found.graph.order());
  const Plan back = on_original(found, transforms, plan);
  CHECK(back.transforms == transforms);
  CHECK(back.steps.front().op() == OpId(2));
  const Plan again = on_transformed(found, back);
  CHECK(again.steps == plan.steps);
  CHECK(again.in_place_of == plan.in_place_of);
  CHECK(again.transforms.empty());
  Plan wrong = back;
  wrong.steps.push_back(Step::compute(OpId(0)));  // gone
  CHECK(on_transformed(found, wrong).steps.back().op().index() >= found.graph.op_count());
}

}  // namespace
}  // namespace lowtide
