// All that is proposed for a graph, with what it would save and cost.
#pragma once

#include <vector>

#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"
#include "lowtide/rewrite/candidate.h"

namespace lowtide::rewrite {

struct Surveyed {
  Candidate region;  // of the survey's graph
  std::int64_t parts = 0;
  Bytes peak;  // of the graph that the split would make, in its own order, estimated
  Ticks time;  // of that graph, all ops once
};

struct Survey {
  Bytes peak;                   // as above, of the graph as it is
  std::vector<Surveyed> found;  // the smallest peak first; of those that do not lower it none
};

// Of a graph without transforms, or of one that they have made. Prices as in part_price.h, on that
// device.
Survey survey(const Graph& graph, const Device& device);

}  // namespace lowtide::rewrite
