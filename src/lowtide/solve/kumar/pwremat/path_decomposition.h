// Path decompositions: bags in a row; a node is in consecutive bags.
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

// Each bag has a node of the order and all earlier nodes with a neighbour that is not earlier. So
// the largest bag has one node more than the order's vertex separation. A bag that a neighbouring
// bag contains is omitted.
PathDecomposition from_order(const Neighbours& graph, std::span<const Node> order);

// An order from `start` on: the next node always leaves the fewest nodes with neighbours still to
// come.
std::vector<Node> narrow_order(const Neighbours& graph, Node start,
                               const std::function<bool(std::int64_t)>& spend);
// Exchanges neighbours in the order if bags get smaller by it; if they stay as large, with
// probability one half. Makes `passes` passes along the order.
void improve_order(const Neighbours& graph, std::vector<Node>& order, int passes, Random& random,
                   const std::function<bool(std::int64_t)>& spend);

}  // namespace lowtide::solve::kumar::pwremat
