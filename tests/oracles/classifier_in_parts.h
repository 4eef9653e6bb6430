// What a hoist and a split of a classifier's whole step make, written down directly: loops over
// parts that add op after op, without following any axis or moving any link.
#pragma once

#include <cstdint>

#include "support/network.h"

namespace lowtide {

// Of one with a barrier, split along the batch; prices as split_along and hoist_of give them. The
// ops stand in the given order, so indices are not those of apply_transforms.
Graph classifier_in_parts(const Classifier& classifier, std::int64_t parts);

}  // namespace lowtide
