// HiRemate's partitioner: small blocks from the bottom up, by the bytes that cross their borders.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/partition/partitioner.h"

namespace lowtide::solve::partition {

// H-Partition of J. Gusak et al., "HiRemate", ICML 2025, Algorithm 2, on the layers of the graph:
// options top_size (M^t), block_size (M^l), alpha.
std::unique_ptr<Partitioner> make_h_partition();

}  // namespace lowtide::solve::partition
