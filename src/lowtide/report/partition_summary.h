// Key figures of a partition: its depth, its number of blocks, and how many of them differ.
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
  std::size_t unique = 0;              // different blocks, the root included
  std::size_t largest = 0, top = 0;  // children of the largest block but the root, and of the root
  Bytes interface, widest;           // of all blocks together, and of the one with the most
  // By block: its level from 0, its children, and the first block that equals it.
  IdVector<BlockId, std::size_t> level, children;
  IdVector<BlockId, BlockId> alike;
};

// Children are layers, blocks, and ops in neither. A backward op counts with its forward op if both
// are in the block. A block counts once for both halves.
PartitionSummary summarise(const Graph& graph, const Partition& partition);

}  // namespace lowtide::report
