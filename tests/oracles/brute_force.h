// The exact answer for tiny graphs, by search over every schedule of compute steps (in place or
// not) and free steps (no transfers). Written from docs/reference/cost.md and the graph's own
// fields; it shares no code with room sim or with any solver. InputError for a graph of more than
// kMostOps or kMostTensors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/problem.h"

namespace lowtide::oracle {

inline constexpr std::size_t kMostOps = 7;
inline constexpr std::size_t kMostTensors = 20;  // made by ops

struct Schedule {
  Bytes peak;
  Ticks duration;
  Plan plan;
};

// `sparing` frees only where it may matter (brute_force.cpp has the proof). `anywhere` frees any
// tensor at any moment: much slower, there to check the other.
enum class Frees { sparing, anywhere };

// The shortest schedule within the budget, and of those one with the smallest peak; none if there
// is no schedule within it.
std::optional<Schedule> fastest(const Graph& graph, Order order, Bytes budget,
                                Frees frees = Frees::sparing);

// The smallest peak of any schedule, by a search of its own for the narrowest path.
Bytes smallest_peak(const Graph& graph, Order order, Frees frees = Frees::sparing);

// Every schedule that nothing beats, from the fastest to the smallest: durations rise as peaks
// fall. The first takes the least time whatever the budget, the last has the smallest peak.
std::vector<Schedule> all_tradeoffs(const Graph& graph, Order order);

// Read off that curve: the least duration within a budget, the least peak within a time limit.
std::optional<Ticks> least_duration(const std::vector<Schedule>& curve, Bytes budget);
std::optional<Bytes> least_peak(const std::vector<Schedule>& curve, Ticks limit);

}  // namespace lowtide::oracle
