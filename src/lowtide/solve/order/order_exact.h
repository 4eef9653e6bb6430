// The exact smallest peak of one piece of an order, without recomputation. Private to `order`.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::solve::order {

struct ExactOrder {
  std::vector<OpId> order;
  Bytes peak;  // bytes in use at most, from before its first op to its last
};

// `piece` is a run of ops that every topological order of the graph computes together, and `start`
// what is live before it. Finds the order of the piece whose peak is smallest, or any whose peak is
// at most `enough`; nothing if more than `max_states` sets of computed ops would have to be looked
// at, or the limits stop it. Takes no time beyond the piece.
std::optional<ExactOrder> exact_order(const Graph& graph, std::span<const OpId> piece, Bytes start,
                                      Bytes enough, std::size_t max_states, Limits& limits);

}  // namespace lowtide::solve::order
