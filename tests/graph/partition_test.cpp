// Partitions against what their words mean: brute force over all tensors and blocks.
#include "lowtide/graph/partition.h"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "lowtide/base/error.h"
#include "lowtide/base/random.h"
#include "lowtide/graph/generate.h"
#include "lowtide/graph/make_partition.h"

#include "support/random_graph.h"
#include "support/sketch.h"

namespace lowtide {

namespace {

bool holds(const Partition& partition, BlockId outer, BlockId inner) {
  while (inner.valid() && inner != outer) inner = partition.blocks[inner].parent;
  return inner == outer;
}

// A tree of blocks that are ranges of layers, nested at random.
BlockTree random_tree(const Graph& graph, const Phases& phases, Random& random) {
  BlockTree tree(graph.op_count());
  std::vector<OpId> layers;
  for (const OpId op : graph.order())
    if (phases.layer[op] == op) layers.push_back(op);
  struct Open {
    BlockId block;
    std::size_t first, last;
  };
  std::vector<Open> open{{BlockId(0), 0, layers.size()}};
  while (!open.empty()) {
    const Open now = open.back();
    open.pop_back();
    for (std::size_t at = now.first; at < now.last;) {
      const std::size_t size =
          1 + static_cast<std::size_t>(random.below(static_cast<std::uint64_t>(now.last - at)));
      const bool nest = size < now.last - now.first && random.below(3) > 0;
      const BlockId block = nest ? tree.add(now.block) : now.block;
      for (std::size_t i = at; i < at + size; ++i) tree.block_of[layers[i]] = block;
      if (nest) open.push_back({block, at, at + size});
      at += size;
    }
  }
  for (const OpId op : graph.order())
    if (phases.layer[op].valid()) tree.block_of[op] = tree.block_of[phases.layer[op]];
  return tree;
}

using Tensors = std::vector<TensorId>;

struct Borders {
  Tensors takes[2], gives[2];
  Bytes saved;
};

Borders borders_of(const Graph& graph, const Partition& partition, const BlockTree& tree,
                   BlockId block) {
  Borders borders;
  const auto inside = [&](OpId op) { return holds(partition, block, tree.block_of[op]); };
  const auto side = [&](OpId op) { return partition.phases.of[op] == Phase::forward ? 0 : 1; };
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId tensor(i);
    const OpId maker = graph.producer(tensor);
    if (!maker.valid()) continue;
    bool leaves = false, saved = false, taken[2] = {false, false};
    for (const OpId reader : graph.consumers(tensor)) {
      if (!inside(reader))
        leaves = true;
      else if (!inside(maker))
        taken[side(reader)] = true;
      else if (side(reader) != side(maker))
        saved = true;
    }
    for (int k = 0; k < 2; ++k)
      if (taken[k]) borders.takes[k].push_back(tensor);
    if (!inside(maker)) continue;
    if (leaves) borders.gives[side(maker)].push_back(tensor);
    const bool kept = leaves || graph.is_output(tensor);
    if (partition.phases.has_backward ? saved : kept) borders.saved += graph.bytes(tensor);
  }
  return borders;
}

void require_right(const Graph& graph, const BlockTree& tree) {
  const Partition partition = make_partition(graph, phases_of(graph), tree);
  check_partition(graph, partition);
  for (const BlockId id : partition.blocks.ids()) {
    const Block& block = partition.blocks[id];
    const Borders borders = borders_of(graph, partition, tree, id);
    CHECK(block.forward.takes == borders.takes[0]);
    CHECK(block.backward.takes == borders.takes[1]);
    CHECK(block.forward.gives == borders.gives[0]);
    CHECK(block.backward.gives == borders.gives[1]);
    CHECK(block.saved_bytes == borders.saved);
    for (const Half* half : {&block.forward, &block.backward})
      for (const OpId op : partition.ops(*half)) CHECK(holds(partition, id, tree.block_of[op]));
  }
}

std::string refusal(const Graph& graph, const BlockTree& tree) {
  try {
    make_partition(graph, phases_of(graph), tree);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

BlockTree tree_of(std::vector<std::size_t> parents, std::vector<std::size_t> blocks) {
  BlockTree tree(blocks.size());
  for (const std::size_t parent : parents) tree.add(BlockId(parent));
  for (std::size_t i = 0; i < blocks.size(); ++i) tree.block_of[OpId(i)] = BlockId(blocks[i]);
  return tree;
}

// A chain of ops 0 to count - 1.
Graph chain(std::size_t count) {
  GraphBuilder builder;
  for (std::size_t i = 0; i < count; ++i) {
    Tensor tensor;
    tensor.bytes = Bytes(1);
    builder.add_tensor(std::move(tensor));
    Op op;
    op.name = "op" + std::to_string(i);
    OpLinks links;
    if (i > 0) links.inputs = {static_cast<std::int64_t>(i) - 1};
    links.outputs = {static_cast<std::int64_t>(i)};
    builder.add_op(std::move(op), links);
  }
  return builder.build();
}

}  // namespace

TEST_CASE("partitions: tensors that cross a border, against brute force") {
  Random random(1);
  for (int i = 0; i < 60; ++i) {
    const Graph graph = random_graph(random);
    require_right(graph, random_tree(graph, phases_of(graph), random));
  }
  for (const std::string_view kind : {"transformer", "unet", "resnet", "chain"}) {
    const Graph graph = generate(kind, 80, 1);
    for (int i = 0; i < 8; ++i) require_right(graph, random_tree(graph, phases_of(graph), random));
  }
}

TEST_CASE("partitions: an invalid partition is refused, with the path") {
  const Graph graph = chain(4);
  CHECK(refusal(graph, tree_of({0}, {0, 1, 1, 0})) == "accepted");
  CHECK(refusal(graph, tree_of({0}, {1, 0, 1, 0})) ==
        "block 1: the block is not convex: a way leads out of it and back in, op 0 \"op0\" -> op 1 "
        "\"op1\" -> op 2 \"op2\" (block 1)");
  CHECK(refusal(graph, tree_of({0, 0}, {1, 2, 1, 2})) ==
        "block 1: the block and others depend on one another: op 0 \"op0\" -> op 1 \"op1\" (block "
        "2) .. op 1 \"op1\" -> op 2 \"op2\" (block 1)");
  CHECK(refusal(graph, tree_of({0, 0}, {1, 1, 1, 1})) == "block 2: has no ops");
  CHECK(refusal(graph, tree_of({0}, {1, 1, 3, 1})) ==
        "op 2 \"op2\": is in a block that does not exist");
  CHECK(refusal(graph, tree_of({2, 0}, {1, 1, 2, 2})) ==
        "block 1: its parent must be a block before it, and is block 2");
  CHECK(refusal(graph, tree_of({0}, {1, 1, 1})) == "ops: the tree has 3 and the graph 4");
}

TEST_CASE("partitions: blocks nested 20,000 deep") {
  const std::size_t count = 20'000;
  const Graph graph = chain(count);
  BlockTree tree(count);
  for (std::size_t i = 1; i < count; ++i) {
    tree.add(BlockId(i - 1));
    tree.block_of[OpId(i)] = BlockId(i);
  }
  const Partition partition = make_partition(graph, phases_of(graph), tree);
  check_partition(graph, partition);
  CHECK(partition.blocks[BlockId(count - 1)].forward.op_count() == 1);
}

TEST_CASE("partitions: the check finds changes by hand") {
  const Graph graph = chain(4);
  const Partition good = make_partition(graph, phases_of(graph), tree_of({0, 0}, {1, 1, 2, 2}));
  const auto refused = [&](auto change) {
    Partition bad = good;
    change(bad);
    try {
      check_partition(graph, bad);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refused([](Partition&) {}) == "accepted");
  CHECK(refused([](Partition& p) { std::swap(p.order[0], p.order[1]); }) ==
        "op 1 \"op1\": it comes before op 0 \"op0\", on which it depends");
  CHECK(refused([](Partition& p) { p.order.pop_back(); }) == "op 3 \"op3\": it is in no block");
  CHECK(refused([](Partition& p) { p.order[0] = p.order[1]; }) ==
        "op 1 \"op1\": it is in two places");
  CHECK(refused([](Partition& p) { p.blocks[BlockId(1)].parent = BlockId(2); }) ==
        "block 1: it is a part of another block");
  CHECK(refused([](Partition& p) { --p.blocks[BlockId(1)].forward.last; }) ==
        "block 0: its parts are not its ops, one after the other");
  CHECK(refused([](Partition& p) { p.blocks[BlockId(1)].forward.parts.pop_back(); }) ==
        "block 1: its parts are not its ops, one after the other");
}

}  // namespace lowtide
