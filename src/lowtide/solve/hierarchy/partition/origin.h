// Partitions a network by its modules.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/partition/partitioner.h"

namespace lowtide::solve::partition {

// A block for each call of a module, by the origins of forward ops: "layers.3.mlp" is inside
// "layers.3".
std::unique_ptr<Partitioner> make_origin();

}  // namespace lowtide::solve::partition
