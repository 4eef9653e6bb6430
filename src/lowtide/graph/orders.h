// Topological orders. An order lists every op once, each after all of Graph::predecessors.
#pragma once

#include <span>
#include <vector>

#include "lowtide/base/random.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// Whether `order` lists every op exactly once and no op before one of its predecessors.
bool is_topological(const Graph& graph, std::span<const OpId> order);

// Always the ready op with the smallest index: the lexicographically smallest order. O(m + n log
// n).
std::vector<OpId> index_order(const Graph& graph);
// Ready ops first in, first out: level by level from the sources. Linear.
std::vector<OpId> breadth_first_order(const Graph& graph);
// Post-order from the sinks, in the given order, over predecessors. An op comes just before the
// first op that needs it, so little is live at once. Linear.
std::vector<OpId> depth_first_order(const Graph& graph);
// Repeatedly a random ready op, each with the same probability. Linear.
std::vector<OpId> random_order(const Graph& graph, Random& random);

}  // namespace lowtide
