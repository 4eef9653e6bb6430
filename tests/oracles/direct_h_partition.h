// H-Partition as its text has it: every candidate looked at again in each step.
#pragma once

#include <cstddef>
#include <set>

#include "lowtide/solve/hierarchy/partition/layer_dag.h"

namespace lowtide::oracles {

// The nodes in each block, blocks inside it included; without the root. Quadratic and worse.
std::set<std::set<std::size_t>> direct_h_partition(const solve::partition::Layers& layers,
                                                   std::size_t top_size, std::size_t block_size,
                                                   double alpha);

}  // namespace lowtide::oracles
