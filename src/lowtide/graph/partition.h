// A partition: a graph as a tree of blocks, each of which can be planned by itself.
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

// What a half of a block runs as one: an op, or the same half of a block inside. One is valid.
struct BlockPart {
  OpId op;
  BlockId block;
  bool operator==(const BlockPart&) const = default;
};

// The forward or the backward ops of a block. Convex: a way from one of its ops to another does not
// leave it. Inputs and outputs of the graph are on no list for being so: each op says which it
// reads and makes, and the lists of nested blocks stay as short as their borders.
struct Half {
  std::vector<BlockPart> parts;     // in a topological order of the parts
  std::size_t first = 0, last = 0;  // its ops, those of blocks inside too: Partition::ops
  std::vector<TensorId> takes;      // read here, made by ops outside the block; by index
  std::vector<TensorId> gives;      // made here, read by ops outside the block; by index

  std::size_t op_count() const { return last - first; }
  bool empty() const { return first == last; }
};

struct Block {
  std::string name;  // what the partitioner calls it; may be empty
  BlockId parent;    // invalid for the root
  Half forward, backward;
  // What the backward half reads of what the forward half made, but for what a block inside saves.
  std::vector<TensorId> saves;
  // Of all that is saved, by blocks inside too. Where the graph has no backward: of what the block
  // makes that is read outside it or an output of the graph.
  Bytes saved_bytes;

  std::size_t op_count() const { return forward.op_count() + backward.op_count(); }
};

struct Partition {
  IdVector<BlockId, Block> blocks;  // the root first, each block before those inside it
  std::vector<OpId> order;          // topological: what each half runs is a range of it
  Phases phases;                    // of the graph

  static BlockId root() { return BlockId(0); }
  std::span<const OpId> ops(const Half& half) const {
    return std::span(order).subspan(half.first, half.op_count());
  }
};

// A tree of blocks as a partitioner says it. Block 0 is the root, which holds whatever is in no
// other; every other stands behind its parent.
struct BlockTree {
  std::vector<BlockId> parents;      // the root's is invalid
  std::vector<std::string> names;    // one for each block, or none at all
  IdVector<OpId, BlockId> block_of;  // the innermost block of each op

  // With a root alone.
  explicit BlockTree(std::size_t ops) : parents(1), block_of(ops, BlockId(0)) {}
  BlockId add(BlockId parent, std::string name = {});
};

// Bytes of the tensors that ops outside make for a block, or read from it.
Bytes interface_bytes(const Graph& graph, const Block& block);
// "block 3 \"layers.3\"", for messages.
std::string label(const Partition& partition, BlockId id);

// Whether a partition is one of the graph: every op in exactly one block and half, blocks and parts
// that know one another, and parts in a topological order at every level, so that every half is
// convex. Throws InputError (place: the block or the op) otherwise. Slow and plain; what
// make_partition has made always passes.
void check_partition(const Graph& graph, const Partition& partition);

}  // namespace lowtide
