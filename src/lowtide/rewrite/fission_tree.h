// The F-Tree (MAGIS, ASPLOS 2024, sections 4.3 and 5.1): regions that could be split, each below
// the one that contains it, with the enabled regions and their numbers of parts. See
// fission_tree.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/rewrite/candidate.h"

namespace lowtide::rewrite {

struct FissionNode {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  Candidate region;
  OpId ruler;                         // the dominator of the region; invalid for a whole reach
  Bytes score;                        // estimated saving of two parts (equation 4)
  std::int64_t level = 0;             // of the scores of its axis, from 1; the last has the best
  std::vector<std::int64_t> numbers;  // possible numbers of parts, ascending
  std::size_t parent = kNone;         // the smallest node with all of its ops and more
  std::vector<std::size_t> children;
};

// Parents come before their children.
struct FissionTree {
  std::vector<FissionNode> nodes;

  bool is_above(std::size_t ancestor, std::size_t node) const;
  // Whether two nodes have common ops and neither is an ancestor of the other: they are never both
  // split.
  bool is_across(std::size_t a, std::size_t b) const { return across[a][b] != 0; }

  std::vector<std::vector<std::uint8_t>> across;
};

// Algorithm 1 with so many levels, at least one. Hot tensors are those live at the peak of the
// given order. Ends early if `stops` returns true.
FissionTree fission_tree(const Graph& graph, std::int64_t levels,
                         const std::function<bool()>& stops = {});

// For each node of a tree its number of parts: 1 if it is disabled.
using Fission = std::vector<std::int64_t>;

// The rules of section 5.1. enable: a disabled leaf, or the disabled parent of an enabled node that
// has no enabled ancestor; any: a disabled node (not in the paper, which climbs from the leaves).
// lift: an enabled node without enabled ancestors is disabled, and its parent enabled. disable: an
// enabled node without enabled descendants. mutate: an enabled node goes to its next number.
enum class FissionRule : std::uint8_t { enable, lift, disable, mutate };
std::string_view to_string(FissionRule rule);

struct FissionMove {
  FissionRule rule;
  std::size_t node;  // that is enabled, lifted to, disabled or mutated
  Fission after;
};

enum class Enable : std::uint8_t { leaves, any };

// All moves from this state, by rule and node; enabled nodes begin with their smallest number of
// parts. None enables a node that overlaps an enabled one, nor one with an enabled ancestor or
// descendant if `nest` is false.
std::vector<FissionMove> fission_moves(const FissionTree& tree, const Fission& now, Enable enable,
                                       bool nest);

}  // namespace lowtide::rewrite
