// A DAG in two parts, one of which comes before the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lowtide/solve/hierarchy/partition/layer_dag.h"

namespace lowtide::solve::partition {

// For each node, whether it is in the second part. No link leads back from that to the first, whose
// share of the nodes is about `share`, off by at most `off` of what there is (or of a single node),
// and as few bytes as the search finds cross. 0 < share < 1. Some result at once if `stop` says
// yes.
std::vector<std::uint8_t> bisect(const LayerDag& dag, double share, double off,
                                 const std::function<bool()>& stop);

}  // namespace lowtide::solve::partition
