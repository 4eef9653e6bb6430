// What substitutions make, and which are refused, in words that name the op.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/transforms/apply.h"
#include "lowtide/transforms/substitution.h"
#include "lowtide/transforms/together.h"

#include "support/network.h"

namespace lowtide {
namespace {

TransformedGraph made(const Graph& graph, const Transform& transform) {
  return apply_transforms(graph, std::vector<Transform>{transform});
}

void refused(const Graph& graph, const Substitute& substitute, const std::string& words) {
  std::string found = "done";
  try {
    made(graph, substitute);
  } catch (const InputError& error) {
    found = error.what();
  }
  CAPTURE(found);
  CHECK(found.find(words) != std::string::npos);
}

// q = x a, k = x b; relu(q), relu(k) are kept, and `more` tells what else there is.
Network two_products(Network::Index rows = 6) {
  Network net;
  const auto x = net.tensor({rows, 4}, "f32", Role::input), a = net.tensor({4, 3}),
             b = net.tensor({4, 5}), q = net.tensor({rows, 3}), k = net.tensor({rows, 5}),
             u = net.tensor({rows, 3}), v = net.tensor({rows, 5});
  net.op("aten.mm", {net.whole("self", x), net.whole("mat2", a)}, {q});
  net.op("aten.mm", {net.whole("self", x), net.whole("mat2", b)}, {k});
  net.op("aten.relu", {net.whole("self", q)}, {u});
  net.in_place(q, u);
  net.op("aten.relu", {net.whole("self", k)}, {v});
  net.keep(u);
  net.keep(v);
  return net;
}

Substitute merged() {
  return {"merge_products",
          {OpId(0), OpId(1)},
          false,
          {{OpId(4), Ticks(7), Bytes(0)}, {OpId(5), Ticks(20), Bytes(9)}}};
}

TEST_CASE("substitutions: products of one matrix are merged, and readers read its columns") {
  const Graph graph = two_products().graph();
  const TransformedGraph found = made(graph, merged());
  // New indices follow those of the file; those of what is gone stay unused.
  CHECK(found.ops.size() == 6);
  CHECK(!found.ops[0].valid());
  CHECK(!found.ops[1].valid());
  CHECK(found.graph.op_count() == 4);
  const OpId cat = found.ops[4], product = found.ops[5], relu = found.ops[3];
  CHECK(found.graph.op(cat).kind == "aten.cat");
  CHECK(found.graph.time(cat) == Ticks(7));
  CHECK(found.graph.time(product) == Ticks(20));
  CHECK(found.graph.workspace(product) == Bytes(9));
  CHECK(found.graph.bytes(found.graph.outputs(cat)[0]) == Bytes(4 * 8 * 4));
  CHECK(found.graph.tensor(found.graph.outputs(product)[0]).shape ==
        std::vector<std::int64_t>{6, 8});
  const Operand& seen = found.graph.op(relu).operands[0];
  CHECK(seen.shape == std::vector<std::int64_t>{6, 5});
  CHECK(seen.strides == std::vector<std::int64_t>{8, 1});
  CHECK(seen.offset == 3);
  CHECK(found.graph.in_place(found.ops[2]).empty());  // it would write over the other's columns
  CHECK(found.source[product] == OpId(0));
  // The only order that all needs leave: made as late as the first reader lets them.
  CHECK(found.graph.order()[0] == cat);
  CHECK(found.graph.order()[1] == product);
}

TEST_CASE("substitutions: a merged product is split into the columns that are read separately") {
  const Graph graph = two_products().graph();
  const Substitute apart{"split_product",
                         {OpId(5)},
                         false,
                         {{OpId(6), Ticks(9), Bytes(0)}, {OpId(7), Ticks(10), Bytes(0)}}};
  const TransformedGraph found = apply_transforms(graph, std::vector<Transform>{merged(), apart});
  CHECK(found.graph.op_count() == 5);
  const Op& first = found.graph.op(found.ops[6]);
  CHECK(first.operands[1].shape == std::vector<std::int64_t>{4, 3});
  CHECK(first.operands[1].strides == std::vector<std::int64_t>{8, 1});
  CHECK(found.graph.op(found.ops[2]).operands[0].laid_out_as(graph.op(OpId(2)).operands[0]));
  CHECK(found.graph.op(found.ops[3]).operands[0].laid_out_as(graph.op(OpId(3)).operands[0]));
}

TEST_CASE("substitutions: an addend is fused into the product, in place") {
  Network net;
  const auto a = net.tensor({6, 4}, "f32", Role::input), b = net.tensor({4, 5}),
             c = net.tensor({6, 5}), d = net.tensor({6, 5}), p = net.tensor({6, 5}),
             s = net.tensor({6, 5});
  net.op("aten.neg", {net.whole("self", c)}, {d});
  net.op("aten.mm", {net.whole("self", a), net.whole("mat2", b)}, {p});
  net.op("aten.add", {net.whole("self", d), net.whole("other", p)}, {s}, {{"alpha", {1.0}}});
  net.in_place(d, s);
  net.keep(s);
  const Substitute into{"add_into_product", {OpId(2)}, false, {{OpId(3), Ticks(5), Bytes(0)}}};
  const TransformedGraph found = made(net.graph(), into);
  CHECK(found.graph.op_count() == 2);
  const OpId product = found.ops[3];
  CHECK(found.graph.op(product).kind == "aten.addmm");
  CHECK(found.graph.outputs(product)[0] == found.tensors[static_cast<std::size_t>(s)]);
  CHECK(found.graph.in_place(product).size() == 1);
  refused(net.graph(), {"add_into_product", {OpId(1)}, false, {}},
          "op 1 \"mm_1\" is of kind \"aten.mm\"");
}

TEST_CASE("substitutions: refusals name the op") {
  const Graph graph = two_products().graph();
  Substitute asked = merged();
  asked.exact = true;
  refused(graph, asked, "\"exact\" is claimed, but rule \"merge_products\" may change bits");
  asked = merged();
  asked.ops = {OpId(0)};
  refused(graph, asked, "op 0 \"mm_0\" is alone in \"ops\"");
  asked.ops = {OpId(0), OpId(2)};
  refused(graph, asked, "op 2 \"relu_2\" is no mm or addmm, but of kind \"aten.relu\"");
  asked = merged();
  asked.prices.pop_back();
  refused(graph, asked,
          "transforms/0/prices: the price of op 5 (\"aten.mm\"), which the rule makes, is missing");
  asked = merged();
  asked.prices.push_back({OpId(3), Ticks(1), Bytes(0)});
  refused(graph, asked,
          "transforms/0/prices/2: op 3 is not made by the rule, which makes ops 4 to 5 here");
  Network net = two_products();
  net.keep(3);  // q
  refused(net.graph(), merged(), "tensor 3 \"t3\" is an output of the graph");
  net = two_products();
  net.latest_op().operands.clear();
  refused(net.graph(), merged(), "op 3 \"relu_3\" does not say how it reads tensor 4");
  net = two_products();
  const auto flat = net.tensor({30});
  net.op("aten.neg", {{"self", -1, TensorId(4), {30}, {1}, 0, "f32"}}, {flat});
  refused(net.graph(),
          {"merge_products",
           {OpId(0), OpId(1)},
           false,
           {{OpId(5), Ticks(7), Bytes(0)}, {OpId(6), Ticks(20), Bytes(9)}}},
          "op 4 \"neg_4\" reads tensor 4");
  net = two_products();
  net.after(0);
  refused(net.graph(), merged(), "op 0 \"mm_0\" must come before op 3 \"relu_3\"");
  refused(graph, {"split_product", {OpId(0)}, false, {}},
          "op 0 \"mm_0\" has no two ranges of columns that are read separately");
}

TEST_CASE("substitutions: products that depend on one another are not merged") {
  Network net;
  const auto x = net.tensor({4, 4}, "f32", Role::input), a = net.tensor({4, 4}),
             q = net.tensor({4, 4}), b = net.tensor({4, 4}), k = net.tensor({4, 4}),
             u = net.tensor({4, 4});
  net.op("aten.mm", {net.whole("self", x), net.whole("mat2", a)}, {q});
  net.op("aten.relu", {net.whole("self", q)}, {b});
  net.op("aten.mm", {net.whole("self", x), net.whole("mat2", b)}, {k});
  net.op("aten.relu", {net.whole("self", k)}, {u});
  net.keep(u);
  refused(net.graph(),
          {"merge_products",
           {OpId(0), OpId(2)},
           false,
           {{OpId(4), Ticks(7), Bytes(0)}, {OpId(5), Ticks(20), Bytes(9)}}},
          "would have to come before itself");
}

TEST_CASE("substitutions: rules have names and anchors of their own") {
  std::vector<std::string_view> names;
  for (const Rule* rule : substitution_rules()) {
    CHECK(!rule->anchors.empty());
    CHECK(find_substitution_rule(rule->name) == rule);
    CHECK(std::ranges::find(names, rule->name) == names.end());
    names.push_back(rule->name);
  }
  CHECK(find_substitution_rule("fuse") == nullptr);
}

TEST_CASE("substitutions: consecutive ones are described as one group") {
  const Substitute merge{"merge_products", {OpId(0)}, false, {}},
      side{"other_side", {OpId(1)}, true, {}};
  const std::vector<Transform> transforms = {merge, side, merge, Hoist{TensorId(0), true, {}},
                                             side};
  std::vector<std::string> said;
  for (const auto some : together(transforms)) said.push_back(describe(some));
  CHECK(said == std::vector<std::string>{"substitutions: 2 by merge_products, 1 by other_side",
                                         "hoist of the backward into the forward",
                                         "substitutions: 1 by other_side"});
  CHECK(together({}).empty());
}

}  // namespace
}  // namespace lowtide
