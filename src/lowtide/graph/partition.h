// A partition: a graph as a tree of blocks, each of which can be planned separately.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lowtide/base/id_vector.h"
#include "lowtide/base/ids.h"
#include "lowtide/base/units.h"
#include "lowtide/graph/graph.h"
#include "lowtide/graph/phases.h"

namespace lowtide {

using BlockId = Id<struct BlockTag>;

// One entry in a half of a block: an op, or the same half of an inner block. Exactly one of both is
// valid.
struct BlockPart {
  OpId op;
  BlockId block;
  bool operator==(const BlockPart&) const = default;
};

// The forward or the backward ops of a block. A half is convex: no path between two of its ops
// leaves it. `takes` and `gives` do not list graph inputs and outputs as such, so the lists of
// nested blocks stay as short as their borders.
struct Half {
  std::vector<BlockPart> parts;     // in a topological order of the parts
  std::size_t first = 0, last = 0;  // range of Partition::order, with the ops of inner blocks
  std::vector<TensorId> takes;      // read here, made by ops outside of the block; by index
  std::vector<TensorId> gives;      // made here, read by ops outside of the block; by index

  std::size_t op_count() const { return last - first; }
  bool empty() const { return first == last; }
};

struct Block {
  std::string name;  // given by the partitioner; may be empty
  BlockId parent;    // invalid for the root
  Half forward, backward;
  // The tensors that the forward half makes and the backward half reads, without those that an
  // inner block saves.
  std::vector<TensorId> saves;
  // The bytes of all saved tensors, those of inner blocks included. In a graph without backward:
  // the bytes of the block's tensors that are read outside of it or are outputs of the graph.
  Bytes saved_bytes;

  std::size_t op_count() const { return forward.op_count() + backward.op_count(); }
};

struct Partition {
  IdVector<BlockId, Block> blocks;  // the root first, each block before its inner blocks
  std::vector<OpId> order;          // topological; the ops of each half are a range of it
  Phases phases;                    // of the graph

  static BlockId root() { return BlockId(0); }
  std::span<const OpId> ops(const Half& half) const {
    return std::span(order).subspan(half.first, half.op_count());
  }
};

// A tree of blocks, as a partitioner returns it. Block 0 is the root, and holds all ops that are in
// no other block. Every other block comes after its parent.
struct BlockTree {
  std::vector<BlockId> parents;      // the root's is invalid
  std::vector<std::string> names;    // one for each block, or none at all
  IdVector<OpId, BlockId> block_of;  // the innermost block of each op

  // A tree with only the root.
  explicit BlockTree(std::size_t ops) : parents(1), block_of(ops, BlockId(0)) {}
  BlockId add(BlockId parent, std::string name = {});
};

// The bytes of the tensors that cross the border of the block.
Bytes interface_bytes(const Graph& graph, const Block& block);
// "block 3 \"layers.3\"", for messages.
std::string label(const Partition& partition, BlockId id);

// Checks that a partition belongs to the graph: every op is in exactly one block and half, parents
// and parts agree, and the parts at every level are in topological order, so that every half is
// convex. Throws InputError (place: the block or the op) otherwise. Slow and simple; results of
// make_partition always pass.
void check_partition(const Graph& graph, const Partition& partition);

}  // namespace lowtide
