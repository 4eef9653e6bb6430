// What people ask of a partition first: how deep, how many blocks, how many of them differ.
#pragma once

#include <cstddef>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"

namespace lowtide::report {

struct PartitionLevel {
  std::size_t blocks = 0, unique = 0;
  std::size_t largest = 0;  // children
  std::size_t ops = 0;      // in blocks of the level
  Bytes interface, saved;   // of all its blocks
};

struct PartitionSummary {
  std::vector<PartitionLevel> levels;  // the root alone is the first
  std::size_t unique = 0;              // blocks that are not alike, the root included
  std::size_t largest = 0, top = 0;  // children of the largest block but the root, and of the root
  Bytes interface, widest;           // of all blocks together, and of the one with the most
  // Of each block: its level from 0, its children, and the first block that is alike.
  IdVector<BlockId, std::size_t> level, children;
  IdVector<BlockId, BlockId> alike;
};

// Children are layers, blocks and ops that belong to neither: a backward op counts with its forward
// op where both are in the block, a block once for both halves.
PartitionSummary summarise(const Graph& graph, const Partition& partition);

}  // namespace lowtide::report
