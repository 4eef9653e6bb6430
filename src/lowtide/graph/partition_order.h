// Orders the parts of every half of a partition. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"

namespace lowtide {

// Ancestors in a tree of blocks, in O(log n) each.
class BlockPaths {
 public:
  explicit BlockPaths(const BlockTree& tree);

  // The innermost block that contains both.
  BlockId common(BlockId a, BlockId b) const;
  // The child of `outer` that is `inner` or contains it. `outer` must contain `inner` and differ
  // from it.
  BlockId below(BlockId outer, BlockId inner) const;
  BlockId parent(BlockId id) const { return parent_[id]; }
  std::int32_t depth(BlockId id) const { return depth_[id]; }

 private:
  BlockId climb(BlockId id, std::int32_t depth) const;

  const IdVector<BlockId, BlockId> parent_;
  IdVector<BlockId, BlockId> jump_;
  IdVector<BlockId, std::int32_t> depth_;
};

// Fills in the parts of all halves of `partition`, whose blocks and phases are known. Throws
// InputError as make_partition does.
void order_parts(const Graph& graph, const BlockTree& tree, const BlockPaths& paths,
                 Partition& partition);

}  // namespace lowtide
