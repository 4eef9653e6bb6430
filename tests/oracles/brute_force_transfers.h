// The exact answer for tiny graphs over a link to the host, or with network ops: a search over
// every sequence of compute (in place or not), free, offload and prefetch steps. Written from
// docs/reference/cost.md and the graph's own fields; it shares no code with room sim or with any
// solver. InputError for a graph of more than kMostOpsWithTransfers or kMostTensorsWithTransfers.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/machine.h"
#include "lowtide/plan/problem.h"

#include "oracles/brute_force.h"

namespace lowtide::oracle {

inline constexpr std::size_t kMostOpsWithTransfers = 9;
inline constexpr std::size_t kMostTensorsWithTransfers = 16;  // inputs among them

struct Link {
  Order order;
  Machine machine;
  std::optional<Bytes> host_budget = std::nullopt;
};

// In effect none, for graphs with network ops whose plans may not transfer.
Link no_link(Order order);

// `sparing` takes only such steps as may matter (the .cpp has the proof). `anywhere` takes every
// legal step at any moment: much slower, there to check the other.
// The shortest schedule within the budget; none if there is no schedule within it. Of equally short
// ones any.
std::optional<Schedule> fastest(const Graph& graph, const Link& link, Bytes budget,
                                Frees frees = Frees::sparing);

// Every pair of peak and duration that nothing beats, from the fastest to the smallest, as for
// graphs without a link. Empty if the host budget cannot be kept at all.
std::vector<Schedule> all_tradeoffs(const Graph& graph, const Link& link);

}  // namespace lowtide::oracle
