// Partitions into blocks of about equal size with as few bytes between them as possible.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/partition/partitioner.h"

namespace lowtide::solve::partition {

// Acyclic partitioning after J. Herrmann et al., "Multilevel algorithms for acyclic partitioning of
// directed acyclic graphs" (dagP), SIAM Journal on Scientific Computing 41(4), 2019.
std::unique_ptr<Partitioner> make_multilevel();

}  // namespace lowtide::solve::partition
