// List heuristics for the order of ops alone: each computes every op once and tries to keep the
// peak low. All near-linear. Private to solver `order`.
#pragma once

#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::solve::order {

// Forward list scheduling: of the ready ops, the one that increases the live bytes least; ties by
// position in the given order. Stops early with an empty list if the limits say so.
std::vector<OpId> list_order(const Graph& graph, Limits& limits);

// The same from the end: chooses the last op, then the one before it, and so on.
std::vector<OpId> reverse_list_order(const Graph& graph, Limits& limits);

// Depth first from the sinks: an op runs just before the first op that needs it, the inputs that
// lead to the largest subtrees first (Sethi and Ullman's rule, by bytes).
std::vector<OpId> sethi_ullman_order(const Graph& graph, Limits& limits);

}  // namespace lowtide::solve::order
