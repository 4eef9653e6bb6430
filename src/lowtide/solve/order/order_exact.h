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
  Bytes peak;  // most bytes in use from its first op to its last
};

// `piece`: a set of ops that is consecutive in every topological order of the graph. `start`: the
// bytes live before it. Finds the order of the piece with the smallest peak, or any order with a
// peak of at most `enough`. nullopt if more than `max_states` sets of computed ops would be
// visited, or if the limits stop it. Its time depends on the piece only.
std::optional<ExactOrder> exact_order(const Graph& graph, std::span<const OpId> piece, Bytes start,
                                      Bytes enough, std::size_t max_states, Limits& limits);

}  // namespace lowtide::solve::order
