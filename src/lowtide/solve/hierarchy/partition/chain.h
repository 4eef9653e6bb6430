// Partitions a network into a chain of blocks, for dynamic programs over chains.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/partition/partitioner.h"

namespace lowtide::solve::partition {

// Cuts wherever a single tensor crosses, or at most as many as option `crossing` allows.
std::unique_ptr<Partitioner> make_chain();

}  // namespace lowtide::solve::partition
