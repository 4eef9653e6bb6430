// All proposals for a graph, with estimated savings and costs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lowtide/device/cost_table.h"
#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"
#include "lowtide/rewrite/candidate.h"
#include "lowtide/transforms/apply.h"

namespace lowtide::rewrite {

// More ops than this one transform may not make to be looked at.
inline constexpr std::int64_t kMostMadeOps = 50'000;

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

// Of a graph without transforms, or of one that they have made. Prices as in part_price.h: by the
// table, which may be null, else on that device. Ends early, with what it has, as soon as `stops`
// says so.
Survey survey(const Graph& graph, const Device& device, const CostTable* costs,
              const std::function<bool()>& stops = {});

// A split with every price, for what a survey of `now`'s graph has found.
Split split_of(const TransformedGraph& now, const Surveyed& one, const Device& device,
               const CostTable* costs);

// The graph with its backward hoisted, or as it is where that is not possible, or not `allowed`.
Applied hoisted(const Graph& graph, const Device& device, const CostTable* costs,
                bool allowed = true);

}  // namespace lowtide::rewrite
