// A lower bound on the duration of every plan of a graph with network ops. Private to the room.
#pragma once

#include "lowtide/graph/graph.h"
#include "lowtide/plan/problem.h"

namespace lowtide::driver {

// At least Graph::least_time, and the time of every chain of ops; with the given order at least
// that of its first computations. Holds with any number of recomputations and transfers.
Ticks network_bound(const Graph& graph, Order order);

}  // namespace lowtide::driver
