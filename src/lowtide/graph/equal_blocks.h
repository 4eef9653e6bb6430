// Which blocks of a partition are equal, so that what is found for one holds for all of them.
#pragma once

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"

namespace lowtide {

// For each block the first, itself perhaps, that is alike: the same for plans but for times
// (Alike::plan in blocks.h, over both halves together). Near-linear in the ops of all blocks that
// look like another at a glance.
IdVector<BlockId, BlockId> first_alike(const Graph& graph, const Partition& partition);

}  // namespace lowtide
