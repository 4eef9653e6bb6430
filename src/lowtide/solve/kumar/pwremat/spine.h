// Algorithm 2 of Kumar et al.: a spine, that is an order in which each op is linked to the next.
#pragma once

#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/solve/kumar/pwremat/path_decomposition.h"

namespace lowtide::solve::kumar::pwremat {

struct Spine {
  std::vector<Node> order;  // topological
  PathDecomposition path;   // of the graph with an edge from each node of the order to the next
};

// Theorem 8 says that no bag gets more than twice as many nodes, and one more. `makers` are each
// node's in-neighbours.
Spine add_spine(const Csr<OpId>& makers, PathDecomposition path);

// The same for an order that is given: only the intervals grow. No bound on the bags.
Spine along_order(std::vector<Node> order, PathDecomposition path);

}  // namespace lowtide::solve::kumar::pwremat
