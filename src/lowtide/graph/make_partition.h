// Makes partitions from trees of blocks.
#pragma once

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"
#include "lowtide/graph/phases.h"

namespace lowtide {

// Parts without dependencies between them are listed by their first op in the given order.
// Near-linear in the links and in the lists of tensors. Throws InputError (place: the block) for a
// tree with missing blocks or with blocks before their parents, for a block without ops, and for
// parts that depend on one another in a cycle, with the dependencies.
Partition make_partition(const Graph& graph, Phases phases, const BlockTree& tree);

}  // namespace lowtide
