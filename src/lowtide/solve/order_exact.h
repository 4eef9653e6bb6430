// The exact smallest peak of one piece of an order, without recomputation. Private to `order`.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/solve/context.h"

namespace lowtide {

struct ExactOrder {
  std::vector<OpId> order;
  bool proven = false;  // no order of the piece has a smaller peak
};

// `piece` is a run of ops that every topological order of the graph computes together, after all
// those in `before` (1 for each op computed earlier). Finds the order of the piece whose peak is
// smallest, or any whose peak is at most `enough`; nothing if more than `max_states` sets of
// computed ops would have to be looked at, or the limits stop it.
std::optional<ExactOrder> exact_order(const Graph& graph, std::span<const OpId> piece,
                                      std::span<const std::uint8_t> before, Bytes enough,
                                      std::size_t max_states, Limits& limits);

}  // namespace lowtide
