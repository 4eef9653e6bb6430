// Path decompositions: bags in a row, each node in bags that stand next to each other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lowtide/base/random.h"
#include "lowtide/solve/kumar/common/op_graph.h"

namespace lowtide::solve::kumar::pwremat {

using Node = std::int32_t;

// The paper's INTERVAL: a node is in the bags first[node] to last[node].
struct PathDecomposition {
  std::int32_t bags = 0;
  std::vector<std::int32_t> first, last;

  std::vector<std::vector<Node>> bag_contents() const;  // ascending
  std::size_t largest_bag() const;
};

// Each bag has a node of the order and all before it that are next to one that does not come
// before: so the largest has one more than the order's vertex separation. Bags that are part of
// their neighbour are left out.
PathDecomposition from_order(const Neighbours& graph, std::span<const Node> order);

// An order that adds, from `start` on, whatever leaves fewest nodes next to what is still to come.
std::vector<Node> narrow_order(const Neighbours& graph, Node start,
                               const std::function<bool(std::int64_t)>& spend);
// Exchanges nodes that stand next to each other in the order as long as bags get smaller by it, or
// stay as they are with a chance of one half; `passes` times along the order.
void improve_order(const Neighbours& graph, std::vector<Node>& order, int passes, Random& random,
                   const std::function<bool(std::int64_t)>& spend);

}  // namespace lowtide::solve::kumar::pwremat
