// Bisects a DAG such that all links between the two halves lead one way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lowtide/solve/hierarchy/partition/layer_dag.h"

namespace lowtide::solve::partition {

// For each node, whether it is in the second half. No link leads from the second half to the first.
// The first half has about the share `share` of the nodes, within `off` of all nodes (or a single
// node), and the search minimises the bytes that cross. 0 < share < 1. If `stop` returns true, the
// result is valid but not optimised.
std::vector<std::uint8_t> bisect(const LayerDag& dag, double share, double off,
                                 const std::function<bool()>& stop);

}  // namespace lowtide::solve::partition
