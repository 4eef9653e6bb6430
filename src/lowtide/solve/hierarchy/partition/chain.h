// A network as a chain of blocks: what dynamic programs over chains need.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/partition/partitioner.h"

namespace lowtide::solve::partition {

// Cuts wherever a single tensor crosses, or as many as option `crossing` allows.
std::unique_ptr<Partitioner> make_chain();

}  // namespace lowtide::solve::partition
