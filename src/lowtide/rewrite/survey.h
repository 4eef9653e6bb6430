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

// A transform that makes more ops than this is not considered.
inline constexpr std::int64_t kMostMadeOps = 50'000;

struct Surveyed {
  Candidate region;  // in the survey's graph
  std::int64_t parts = 0;
  Bytes peak;  // estimated, of the unplanned step of the split graph
  Ticks time;  // of computing each op of that graph once
};

struct Survey {
  Bytes peak;                   // of the unplanned step of the graph itself
  std::vector<Surveyed> found;  // the smallest peak first; only those that lower the peak
};

// Surveys a graph without transforms, or a transformed one. Prices are those of part_price.h: from
// the table, which may be null, or for the device. Ends early, with its results so far, if `stops`
// returns true.
Survey survey(const Graph& graph, const Device& device, const CostTable* costs,
              const std::function<bool()>& stops = {});

// The split with all prices, for a result of a survey of `now`'s graph.
Split split_of(const TransformedGraph& now, const Surveyed& one, const Device& device,
               const CostTable* costs);

// The graph with its backward hoisted, or unchanged if that is impossible, or not `allowed`.
Applied hoisted(const Graph& graph, const Device& device, const CostTable* costs,
                bool allowed = true);

}  // namespace lowtide::rewrite
