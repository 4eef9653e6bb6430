#include "lowtide/graph/blocks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"

#include "graph/relisted.h"
#include "graph/same_block.h"
#include "support/random_graph.h"
#include "support/scale.h"

namespace lowtide {

namespace {

std::vector<OpId> all_ops(const Graph& graph) {
  return {graph.order().begin(), graph.order().end()};
}

bool equal_by_brute_force(const OpBlock& a, const OpBlock& b) {
  std::vector<OpId> ops = b.ops;
  std::ranges::sort(ops);
  do {
    if (correspond(a, {b.graph, ops})) return true;
  } while (std::ranges::next_permutation(ops).found);
  return false;
}

// Small, and of so few kinds of ops and links that equal ones come up by chance.
Graph small_graph(Random& random, std::size_t count) {
  GraphParts parts;
  const auto add_tensor = [&] {
    parts.tensors.emplace_back();
    parts.tensors.back().bytes = Bytes(8);
  };
  const std::size_t inputs = random.below(4);
  for (std::size_t i = 0; i < inputs; ++i) add_tensor();
  for (std::size_t i = 0; i < count; ++i) {
    Op op;
    op.kind = random.chance(0.8) ? "a" : "b";
    OpLinks links;
    const std::size_t reads = random.below(3);
    for (std::size_t k = 0; k < reads && !parts.tensors.empty(); ++k) {
      const auto read = static_cast<std::int64_t>(random.below(parts.tensors.size()));
      if (std::ranges::find(links.inputs, read) == links.inputs.end()) links.inputs.push_back(read);
    }
    if (i > 0 && random.chance(0.1))
      links.after.push_back(static_cast<std::int64_t>(random.below(i)));
    const std::size_t makes = random.chance(0.2) ? 2 : 1;
    for (std::size_t k = 0; k < makes; ++k) {
      links.outputs.push_back(static_cast<std::int64_t>(parts.tensors.size()));
      if (random.chance(0.1)) parts.outputs.push_back(links.outputs.back());
      add_tensor();
    }
    if (!links.inputs.empty() && random.chance(0.1))
      links.in_place.push_back({links.inputs.back(), links.outputs.front()});
    parts.ops.push_back(std::move(op));
    parts.links.push_back(std::move(links));
  }
  return parts.build();
}

// Two ops for each edge, one for each direction, that read its ends: tensors from outside.
Graph edges(std::size_t vertices, const std::vector<std::array<std::size_t, 2>>& list) {
  GraphParts parts;
  parts.tensors.resize(vertices);
  for (const auto& [a, b] : list)
    for (const auto& [from, to] : {std::array{a, b}, std::array{b, a}}) {
      parts.ops.emplace_back();
      parts.links.push_back(
          {.inputs = {static_cast<std::int64_t>(from), static_cast<std::int64_t>(to)},
           .outputs = {},
           .after = {},
           .mutates = {}});
    }
  return parts.build();
}

Operand operand(const char* name, std::size_t tensor, std::vector<std::int64_t> shape) {
  Operand made;
  made.argument = name;
  made.tensor = TensorId(tensor);
  made.shape = std::move(shape);
  made.strides = {2, 1};
  made.dtype = "f32";
  return made;
}

// x, w -> mm -> y; y -> relu -> z (leaves); y, z -> add -> s, in place of y or z.
GraphParts example() {
  GraphParts parts;
  for (int i = 0; i < 5; ++i) {
    Tensor tensor;
    tensor.bytes = Bytes(16);
    tensor.shape = {2, 2};
    tensor.dtype = "f32";
    parts.tensors.push_back(std::move(tensor));
  }
  for (const char* kind : {"mm", "relu", "add"}) {
    Op op;
    op.kind = kind;
    parts.ops.push_back(std::move(op));
  }
  parts.ops[0].operands = {operand("self", 0, {2, 2}), operand("mat2", 1, {2, 2})};
  parts.ops[0].results = {operand("out", 2, {2, 2})};
  parts.ops[2].arguments = {{"alpha", {std::int64_t{1}}}, {"dtype", {std::string("f32")}}};
  parts.ops[1].attributes = R"({"a": [1, "x, }"], "source": "model.py:3"})";
  parts.links = {{.inputs = {0, 1}, .outputs = {2}, .after = {}, .mutates = {}},
                 {.inputs = {2}, .outputs = {3}, .after = {}, .mutates = {}},
                 {.inputs = {2, 3}, .outputs = {4}, .after = {}, .mutates = {}}};
  parts.outputs = {4};
  return parts;
}

BlockHash changed(const std::function<void(GraphParts&)>& change) {
  GraphParts parts = example();
  change(parts);
  const Graph graph = parts.build();
  return block_hash(graph, all_ops(graph));
}

}  // namespace

TEST_CASE("names, times, roles and the surroundings do not change a block's hash") {
  const BlockHash hash = changed([](GraphParts&) {});
  CHECK(to_string(hash).size() == 32);
  const std::vector<std::function<void(GraphParts&)>> changes = {
      [](GraphParts& p) { p.ops[0].name = "other"; },
      [](GraphParts& p) { p.ops[0].origin = "layer1"; },
      [](GraphParts& p) { p.ops[0].phase = "backward"; },
      [](GraphParts& p) { p.ops[0].time = Ticks(7); },
      [](GraphParts& p) { p.tensors[0].name = "other"; },
      [](GraphParts& p) { p.tensors[0].role = Role::parameter; },
      [](GraphParts& p) { p.tensors[0].releasable = true; },
      [](GraphParts& p) { p.tensors[0].stays = true; },
      [](GraphParts& p) { p.tensors.emplace_back(); },
      [](GraphParts& p) { std::swap(p.ops[2].arguments[0], p.ops[2].arguments[1]); },
      [](GraphParts& p) { std::swap(p.ops[0].operands[0], p.ops[0].operands[1]); },
      [](GraphParts& p) { p.ops[2].attributes = "{\"said\":1}"; },
      [](GraphParts& p) { p.ops[1].attributes = R"({"source":"b.py:4","a":[1,"x, }"]})"; },
      [](GraphParts& p) { p.ops[0].attributes = "{}"; },
  };
  for (const auto& change : changes) CHECK(changed(change) == hash);
}

TEST_CASE("every other property changes a block's hash") {
  std::set<BlockHash> hashes = {changed([](GraphParts&) {})};
  const std::vector<std::function<void(GraphParts&)>> changes = {
      [](GraphParts& p) { p.ops[1].kind = "gelu"; },
      [](GraphParts& p) { p.ops[1].attributes = R"({"a": [2, "x, }"]})"; },
      [](GraphParts& p) { p.ops[1].attributes = R"({"a": [1, "x,}"]})"; },
      [](GraphParts& p) { p.ops[2].arguments[0].value = {std::int64_t{2}}; },
      [](GraphParts& p) { p.ops[2].arguments[0].value = {1.0}; },
      [](GraphParts& p) { p.ops[2].arguments[0].value = {true}; },
      [](GraphParts& p) { p.ops[2].arguments[0].value = {Literal::List{{std::int64_t{1}}}}; },
      [](GraphParts& p) { p.ops[2].arguments[0].name = "beta"; },
      [](GraphParts& p) { p.ops[2].arguments.pop_back(); },
      [](GraphParts& p) { p.ops[0].workspace = Bytes(1); },
      [](GraphParts& p) { p.ops[0].recomputable = false; },
      [](GraphParts& p) {
        p.ops[0].operands[0].strides = {1, 2};
      },
      [](GraphParts& p) {
        p.ops[0].operands[0].shape = {2, 1};
      },
      [](GraphParts& p) { p.ops[0].operands[0].dtype = "i32"; },
      [](GraphParts& p) { p.ops[0].operands[0].index = 0; },
      [](GraphParts& p) { p.ops[0].operands[0].argument = "other"; },
      [](GraphParts& p) { std::swap(p.ops[0].operands[0].tensor, p.ops[0].operands[1].tensor); },
      [](GraphParts& p) { p.ops[0].operands.pop_back(); },
      [](GraphParts& p) {
        p.ops[0].results[0].strides = {1, 2};
      },
      [](GraphParts& p) { p.tensors[0].bytes = Bytes(32); },
      [](GraphParts& p) { p.tensors[1].bytes = Bytes(32); },
      [](GraphParts& p) { p.tensors[3].shape = {4}; },
      [](GraphParts& p) { p.tensors[3].dtype = "i32"; },
      [](GraphParts& p) {
        p.links[2].inputs = {3, 2};
      },
      [](GraphParts& p) { p.links[2].inputs = {3}; },
      [](GraphParts& p) { p.links[1].inputs = {0}; },
      [](GraphParts& p) { p.links[1].mutates = {2}, p.links[2].inputs = {3}; },
      [](GraphParts& p) {
        p.links[2].in_place = {{2, 4}};
      },
      [](GraphParts& p) {
        p.links[2].in_place = {{3, 4}};
      },
      [](GraphParts& p) {
        p.links[2].in_place = {{2, 4}, {3, 4}};
      },
      [](GraphParts& p) { p.links[2].after = {0}; },
      [](GraphParts& p) { p.outputs = {}; },
      [](GraphParts& p) { p.outputs = {3}; },
      [](GraphParts& p) {
        p.outputs = {4, 3};
      },
  };
  for (const auto& change : changes) CHECK(hashes.insert(changed(change)).second);
}

TEST_CASE("one tensor from outside differs from two equal ones") {
  const auto hash = [](std::int64_t second) {
    GraphParts parts;
    parts.tensors.resize(2);
    for (const std::int64_t read : {std::int64_t{0}, second}) {
      parts.ops.emplace_back();
      parts.links.push_back({.inputs = {read}, .outputs = {}, .after = {}, .mutates = {}});
    }
    const Graph graph = parts.build();
    return block_hash(graph, all_ops(graph));
  };
  CHECK(hash(0) != hash(1));
}

TEST_CASE("blocks of a graph in another listing have the same hash, and correspond") {
  Random random(1);
  for (int i = 0; i < samples(400); ++i) {
    RandomGraphSettings settings;
    settings.ops = 1 + random.below(30);
    settings.bytes = 2;
    const Graph graph = random_graph(random, settings);
    const Relisted other = relisted(graph, random);
    std::vector<OpId> ops;
    const double share = random.uniform() * 1.3;
    for (const OpId op : graph.order())
      if (random.chance(share)) ops.push_back(op);
    random.shuffle(ops);
    std::vector<OpId> moved = other.of(ops);
    random.shuffle(moved);
    const BlockForm a = block_form(graph, ops), b = block_form(other.graph, moved);
    CHECK(a.hash == b.hash);
    CHECK(a.exact);
    CHECK(b.exact);
    CHECK(a.ops.size() == ops.size());
    CHECK(correspond({graph, a.ops}, {other.graph, b.ops}));
  }
}

TEST_CASE("small blocks have equal hashes if and only if brute force finds them equal") {
  Random random(2);
  for (int round = 0; round < samples(6); ++round) {
    const std::size_t ops = 1 + static_cast<std::size_t>(round) % 6;
    std::vector<Graph> graphs;
    for (int i = 0; i < (ops < 6 ? 60 : 24); ++i) graphs.push_back(small_graph(random, ops));
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      const OpBlock a{graphs[i], block_form(graphs[i], all_ops(graphs[i])).ops};
      for (std::size_t j = 0; j < i; ++j) {
        const BlockForm form = block_form(graphs[j], all_ops(graphs[j]));
        const OpBlock b{graphs[j], form.ops};
        const bool equal = block_hash(a.graph, a.ops) == form.hash;
        REQUIRE(equal == equal_by_brute_force(a, b));
        if (equal) REQUIRE(correspond(a, b));
      }
    }
  }
}

TEST_CASE("blocks with equal neighbourhoods of every op are distinguished") {
  const Graph two_triangles = edges(6, {{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}});
  const Graph hexagon = edges(6, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}});
  const Graph prism =
      edges(6, {{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}, {0, 3}, {1, 4}, {2, 5}});
  const Graph bipartite =
      edges(6, {{0, 3}, {0, 4}, {0, 5}, {1, 3}, {1, 4}, {1, 5}, {2, 3}, {2, 4}, {2, 5}});
  std::set<BlockHash> hashes;
  Random random(3);
  for (const Graph* graph : {&two_triangles, &hexagon, &prism, &bipartite}) {
    const BlockForm form = block_form(*graph, all_ops(*graph));
    CHECK(form.exact);
    CHECK(hashes.insert(form.hash).second);
    const Relisted other = relisted(*graph, random);
    const BlockForm same = block_form(other.graph, all_ops(other.graph));
    CHECK(same.hash == form.hash);
    CHECK(correspond({*graph, form.ops}, {other.graph, same.ops}));
  }
}

TEST_CASE("a block too symmetric for the search is reported, and keeps its hash") {
  // Three random matchings of as many ends: regular, and no two ends alike.
  Random random(4);
  constexpr std::size_t kEnds = 300;
  std::vector<std::array<std::size_t, 2>> list;
  for (int matching = 0; matching < 3; ++matching) {
    const auto ends = shuffled(kEnds, random);
    for (std::size_t i = 0; i < kEnds; i += 2) list.push_back({ends[i], ends[i + 1]});
  }
  const Graph graph = edges(kEnds, list);
  const Relisted other = relisted(graph, random);
  const BlockForm a = block_form(graph, all_ops(graph));
  const BlockForm b = block_form(other.graph, all_ops(other.graph));
  CHECK_FALSE(a.exact);
  CHECK_FALSE(b.exact);
  CHECK(a.hash == b.hash);
  CHECK(a.ops.size() == graph.op_count());
}

TEST_CASE("many equal parallel ops need no search") {
  // Updates that share a learning rate.
  GraphParts parts;
  parts.tensors.resize(2001);
  for (std::int64_t i = 0; i < 1000; ++i) {
    parts.ops.emplace_back();
    parts.links.push_back(
        {.inputs = {2 * i, 2000}, .outputs = {2 * i + 1}, .after = {}, .mutates = {}});
  }
  const Graph graph = parts.build();
  CHECK(block_form(graph, all_ops(graph)).exact);
}

TEST_CASE("the empty block has a hash, and no op counts twice") {
  const Graph graph = example().build();
  const BlockForm empty = block_form(graph, {});
  CHECK(empty.ops.empty());
  CHECK(empty.exact);
  CHECK(empty.hash == block_hash(GraphBuilder().build(), {}));
  CHECK(empty.hash != block_hash(graph, std::vector{OpId(0)}));
  CHECK_THROWS(block_hash(graph, std::vector{OpId(0), OpId(0)}));
}

TEST_CASE("blocks: Alike::plan ignores the code") {
  const auto graph = [](std::string kind, std::int64_t bytes, std::int64_t columns) {
    GraphParts parts;
    for (int i = 0; i < 2; ++i) {
      parts.tensors.emplace_back();
      parts.tensors.back().bytes = Bytes(bytes);
      parts.tensors.back().shape = {columns};
    }
    Op op;
    op.kind = std::move(kind);
    OpLinks links;
    links.inputs = {0};
    links.outputs = {1};
    parts.ops.push_back(op);
    parts.links.push_back(links);
    return parts.build();
  };
  const auto hash = [](const Graph& of, Alike alike) { return block_hash(of, all_ops(of), alike); };
  const Graph one = graph("relu", 8, 2), other = graph("tanh", 8, 1), large = graph("relu", 16, 2);
  CHECK(hash(one, Alike::code) != hash(other, Alike::code));
  CHECK(hash(one, Alike::plan) == hash(other, Alike::plan));
  CHECK(hash(one, Alike::plan) != hash(large, Alike::plan));
}

}  // namespace lowtide
