// Tree decompositions of an undirected graph from orders in which its nodes are eliminated.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lowtide/solve/kumar/common/op_graph.h"

namespace lowtide::solve::kumar::twremat {

using Node = std::int32_t;
using Bag = std::vector<Node>;  // ascending

// Bags and their tree: `parent` is the index of a bag, or -1 for the root.
struct TreeDecomposition {
  std::vector<Bag> bags;
  std::vector<std::int32_t> parent;
  std::size_t width() const;  // largest bag less one
};

// Which node is eliminated next: the one that adds fewest edges (Bodlaender and Koster, "Treewidth
// computations I", 2010), the one with fewest neighbours, or the first in `positions`.
enum class Elimination : std::uint8_t { min_fill, min_degree, given };

struct EliminationSettings {
  Elimination rule = Elimination::min_fill;
  std::size_t widest = SIZE_MAX;  // gives up beyond this width
  std::size_t dense = SIZE_MAX;  // when all that are left have so many neighbours, they are one bag
};

// Eliminating a node joins its neighbours with each other; the node and its neighbours are a bag.
// Ties go to the first node in `positions`. Empty if the width passes `widest`, or if `spend`,
// which is charged with work, says stop.
std::optional<TreeDecomposition> decompose(const Neighbours& graph,
                                           const std::vector<std::int32_t>& positions,
                                           const EliminationSettings& settings,
                                           const std::function<bool(std::int64_t)>& spend);

// Lemma 1: merges adjacent bags of which one contains the other, so that at most as many bags as
// nodes are left.
TreeDecomposition shrink(const TreeDecomposition& decomposition);

}  // namespace lowtide::solve::kumar::twremat
