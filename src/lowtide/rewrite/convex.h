// Convex sets of ops: no path leaves such a set and returns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::rewrite {

// By op: is it in the set?
using Members = std::vector<std::uint8_t>;

Members members_of(const Graph& graph, std::span<const OpId> ops);

// The ops, in the given order, cut into convex sets: an op is in a later one than another if a way
// leads from that to it through ops that are not among them. Linear. `before`: those of them that
// run before all parts; they wait for none of the others, and ways through them do not count.
std::vector<std::vector<OpId>> convex_sets(const Graph& graph, const Members& among,
                                           const Members& before);

// The ops and all on a way between two of them.
Members hull(const Graph& graph, const Members& of);

}  // namespace lowtide::rewrite
