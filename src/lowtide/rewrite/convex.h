// Convex sets of ops: no path leaves such a set and returns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::rewrite {

// Flags by op: whether it is in the set.
using Members = std::vector<std::uint8_t>;

Members members_of(const Graph& graph, std::span<const OpId> ops);

// Divides the ops, in the given order, into convex sets. An op is in a later set than another if a
// path leads to it from the other through ops that are not among them. Linear. `before`: ops among
// them that run before all parts; they depend on none of the others, and paths through them do not
// count.
std::vector<std::vector<OpId>> convex_sets(const Graph& graph, const Members& among,
                                           const Members& before);

// The ops, and all ops on paths between two of them.
Members hull(const Graph& graph, const Members& of);

}  // namespace lowtide::rewrite
