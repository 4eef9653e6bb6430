// Finds equal blocks of a partition, so that a plan of one can be used for all of them.
#pragma once

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"

namespace lowtide {

// For each block the first block that equals it in everything on which plans depend, except times
// (perhaps the block itself; Alike::plan in alike.h, over both halves together). Near-linear in the
// ops of all blocks that have as many ops as another block.
IdVector<BlockId, BlockId> first_alike(const Graph& graph, const Partition& partition);

}  // namespace lowtide
