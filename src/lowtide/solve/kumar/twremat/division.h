// Divides a tree decomposition recursively along balanced separators.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/solve/kumar/twremat/elimination.h"

namespace lowtide::solve::kumar::twremat {

// The bag `separator`, whose removal leaves subtrees with at most half of the weight each. Lemma 3:
// if every bag has weight 1, each subtree has at most half of the bags.
std::int32_t balanced_separator(const TreeDecomposition& tree, std::span<const double> weights);

// A call of Algorithm 1 for a component of the graph: its separator, without the nodes of
// separators above, and the components that remain without it. A component precedes those within
// it.
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

// Divides along balanced separators until no bags are left. `weights` are by node: a bag has the
// weight of the nodes that its parent lacks. Empty: each bag has weight 1, as in the paper.
Division divide(const TreeDecomposition& tree, const std::vector<std::int32_t>& positions,
                std::span<const double> weights);

// The paper's TWRemat(k): components with fewer than `limit` bags are not divided.
Division stop_below(const Division& division, const std::vector<std::int32_t>& positions,
                    std::size_t limit);

}  // namespace lowtide::solve::kumar::twremat
