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

// Bags and the tree that joins them: `parent` of the root is -1, of others the index of a bag.
struct TreeDecomposition {
  std::vector<Bag> bags;
  std::vector<std::int32_t> parent;
  std::size_t width() const;  // largest bag less one
};

// What is eliminated next: what adds fewest edges (Bodlaender and Koster, "Treewidth computations
// I", 2010), what has fewest neighbours, or what comes first in `positions`.
enum class Elimination : std::uint8_t { min_fill, min_degree, given };

struct EliminationSettings {
  Elimination rule = Elimination::min_fill;
  std::size_t widest = SIZE_MAX;  // gives up beyond this width
  std::size_t dense = SIZE_MAX;  // when all that are left have so many neighbours, they are one bag
};

// Eliminating a node joins its neighbours with each other; with them it is a bag. Ties go to what
// comes first in `positions`. Nothing if it gives up or `spend`, which is told of work, says stop.
std::optional<TreeDecomposition> decompose(const Neighbours& graph,
                                           const std::vector<std::int32_t>& positions,
                                           const EliminationSettings& settings,
                                           const std::function<bool(std::int64_t)>& spend);

// Lemma 1: merges adjacent bags of which one contains the other, so that no more bags are left than
// there are nodes.
TreeDecomposition shrink(const TreeDecomposition& decomposition);

}  // namespace lowtide::solve::kumar::twremat
