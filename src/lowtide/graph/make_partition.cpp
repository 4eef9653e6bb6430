// Makes a partition from a tree of blocks: its order, and the tensors that cross the border of each
// block. Each tensor is visited once, with the ancestors of the blocks of its producer and its
// readers up to their common ancestor.
#include "lowtide/graph/make_partition.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/graph/partition_order.h"

namespace lowtide {

namespace {

std::string number_text(BlockId id) { return "block " + std::to_string(id.index()); }

void require_tree(const Graph& graph, const BlockTree& tree) {
  if (tree.parents.empty() || tree.parents.front().valid())
    throw InputError("block 0", "is the root and has no parent");
  if (tree.parents.size() > kMaxCount / 2)
    throw InputError("blocks", "there are more than " + std::to_string(kMaxCount / 2));
  for (std::size_t i = 1; i < tree.parents.size(); ++i) {
    const BlockId parent = tree.parents[i];
    if (!parent.valid() || parent.index() >= i)
      throw InputError(number_text(BlockId(i)),
                       "its parent must be a block before it, and is " +
                           (parent.valid() ? number_text(parent) : std::string("none")));
  }
  if (tree.block_of.size() != graph.op_count())
    throw InputError("ops", "the tree has " + std::to_string(tree.block_of.size()) +
                                " and the graph " + std::to_string(graph.op_count()));
  std::vector<std::uint8_t> used(tree.parents.size(), 0);
  for (const OpId op : tree.block_of.ids()) {
    const BlockId block = tree.block_of[op];
    if (!block.valid() || block.index() >= tree.parents.size())
      throw InputError(graph.label(op), "is in a block that does not exist");
    used[block.index()] = 1;
  }
  for (std::size_t i = tree.parents.size(); i-- > 1;) {
    if (used[i] == 0) throw InputError(number_text(BlockId(i)), "has no ops");
    used[tree.parents[i].index()] = 1;
  }
}

class Maker {
 public:
  Maker(const Graph& graph, const BlockTree& tree, Partition& partition)
      : graph_(graph), tree_(tree), paths_(tree), partition_(partition) {}

  void run() {
    order_parts(graph_, tree_, paths_, partition_);
    partition_.order.reserve(graph_.op_count());
    list_ops(&Block::forward);
    list_ops(&Block::backward);
    find_borders();
  }

 private:
  // Depth first, with an explicit stack, since trees may be deep.
  void list_ops(Half Block::*side) {
    std::vector<std::pair<BlockId, std::size_t>> open;
    const auto enter = [&](BlockId id) {
      (partition_.blocks[id].*side).first = partition_.order.size();
      open.emplace_back(id, 0);
    };
    enter(Partition::root());
    while (!open.empty()) {
      auto& [id, next] = open.back();
      Half& half = partition_.blocks[id].*side;
      if (next == half.parts.size()) {
        half.last = partition_.order.size();
        open.pop_back();
        continue;
      }
      const BlockPart part = half.parts[next++];
      if (part.op.valid())
        partition_.order.push_back(part.op);
      else
        enter(part.block);
    }
  }

  Half& half(BlockId block, OpId op) {
    Block& found = partition_.blocks[block];
    return partition_.phases.of[op] == Phase::forward ? found.forward : found.backward;
  }

  void find_borders() {
    taken_.assign(2 * partition_.blocks.size(), TensorId());
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
      if (!graph_.is_input(TensorId(i))) find_borders(TensorId(i));
    for (std::size_t i = partition_.blocks.size(); i-- > 1;) {
      const Block& block = partition_.blocks[BlockId(i)];
      partition_.blocks[block.parent].saved_bytes += block.saved_bytes;
    }
    if (partition_.phases.has_backward) return;
    // Only outputs of the graph so far, so that an output which is also read outside is counted
    // once.
    for (Block& block : partition_.blocks)
      for (const TensorId tensor : block.forward.gives)
        if (!graph_.is_output(tensor)) block.saved_bytes += graph_.bytes(tensor);
  }

  void find_borders(TensorId tensor) {
    const OpId maker = graph_.producer(tensor);
    const BlockId made = tree_.block_of[maker];
    // saved: the block that saves the tensor. given: the innermost block that contains all readers.
    BlockId saved, given = made;
    for (const OpId reader : graph_.consumers(tensor)) {
      const BlockId read = tree_.block_of[reader];
      const BlockId meet = made == read ? made : paths_.common(made, read);
      take(tensor, reader, read, meet);
      if (paths_.depth(meet) < paths_.depth(given)) given = meet;
      const bool across = partition_.phases.of[maker] != partition_.phases.of[reader];
      if (across && (!saved.valid() || paths_.depth(meet) > paths_.depth(saved))) saved = meet;
    }
    for (BlockId block = made; block != given; block = paths_.parent(block))
      half(block, maker).gives.push_back(tensor);
    if (!partition_.phases.has_backward && graph_.is_output(tensor))
      partition_.blocks[made].saved_bytes += graph_.bytes(tensor);
    if (!saved.valid()) return;
    partition_.blocks[saved].saves.push_back(tensor);
    partition_.blocks[saved].saved_bytes += graph_.bytes(tensor);
  }

  // All blocks inside of `end` that contain the reader.
  void take(TensorId tensor, OpId reader, BlockId block, BlockId end) {
    const std::size_t side = partition_.phases.of[reader] == Phase::forward ? 0 : 1;
    for (; block != end; block = paths_.parent(block)) {
      TensorId& latest = taken_[2 * block.index() + side];
      if (latest == tensor) return;  // all outer blocks have it too
      latest = tensor;
      half(block, reader).takes.push_back(tensor);
    }
  }

  const Graph& graph_;
  const BlockTree& tree_;
  BlockPaths paths_;
  Partition& partition_;
  std::vector<TensorId> taken_;  // the last tensor added to each half
};

}  // namespace

Partition make_partition(const Graph& graph, Phases phases, const BlockTree& tree) {
  require_tree(graph, tree);
  Partition partition;
  partition.phases = std::move(phases);
  partition.blocks.resize(tree.parents.size());
  for (const BlockId id : partition.blocks.ids()) {
    partition.blocks[id].parent = tree.parents[id.index()];
    if (id.index() < tree.names.size()) partition.blocks[id].name = tree.names[id.index()];
  }
  Maker(graph, tree, partition).run();
  return partition;
}

}  // namespace lowtide
