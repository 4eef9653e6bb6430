// A lower bound on the duration of every plan of a graph with network ops. Private to the room.
#pragma once

#include "lowtide/graph/graph.h"

namespace lowtide::driver {

// At least Graph::least_time, and the time of every chain of ops. Holds with any number of
// recomputations and transfers.
Ticks network_bound(const Graph& graph);

}  // namespace lowtide::driver
