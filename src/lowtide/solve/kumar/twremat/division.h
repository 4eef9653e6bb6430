// How balanced separators take a tree decomposition apart, down to nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/solve/kumar/twremat/elimination.h"

namespace lowtide::solve::kumar::twremat {

// Removing the bag `separator` leaves subtrees, each with at most half of the weight. Lemma 3: with
// every bag of weight 1 the subtrees have at most half of the bags.
std::int32_t balanced_separator(const TreeDecomposition& tree, std::span<const double> weights);

// A call of Algorithm 1 for a part of the graph: its separator, less what separators above took,
// and the parts that are left without it. Parts come before the parts within them.
struct Part {
  std::int32_t parent = -1;
  std::int32_t depth = 0;
  std::size_t bags = 0;         // of the part's tree decomposition
  std::vector<Node> separator;  // by position; all that is left where nothing divides it further
};
struct Division {
  std::vector<Part> parts;
  std::vector<std::int32_t> part_of;  // by node: the part whose separator it is in
};

// Divides along balanced separators as long as there are bags. `weights` are those of the nodes: a
// bag counts what it holds that its parent does not. Empty: each bag counts as one, as in the
// paper.
Division divide(const TreeDecomposition& tree, const std::vector<std::int32_t>& positions,
                std::span<const double> weights);

// The paper's TWRemat(k): parts with fewer than `limit` bags are not divided.
Division stop_below(const Division& division, const std::vector<std::int32_t>& positions,
                    std::size_t limit);

}  // namespace lowtide::solve::kumar::twremat
