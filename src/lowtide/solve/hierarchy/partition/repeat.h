// Partitions a network by its repeated blocks.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/partition/partitioner.h"

namespace lowtide::solve::partition {

// Equal blocks as `repeated_blocks` finds them (graph/repeats.h).
std::unique_ptr<Partitioner> make_repeat();

}  // namespace lowtide::solve::partition
