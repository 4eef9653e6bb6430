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
  OpId ruler;                         // whose output all of it hangs on; invalid for a whole reach
  Bytes score;                        // what two parts are hoped to save (equation 4)
  std::int64_t level = 0;             // of the scores of its axis, from 1; the last holds the best
  std::vector<std::int64_t> numbers;  // of parts that it may have, ascending
  std::size_t parent = kNone;         // the smallest node that holds more and all of its ops
  std::vector<std::size_t> children;
};

// Parents stand before their children.
struct FissionTree {
  std::vector<FissionNode> nodes;

  bool is_above(std::size_t ancestor, std::size_t node) const;
  // Whether two nodes have ops in common and neither is above the other: never both are split.
  bool is_across(std::size_t a, std::size_t b) const { return across[a][b] != 0; }

  std::vector<std::vector<std::uint8_t>> across;
};

// Algorithm 1 with so many levels, at least one. Hot are the tensors at the fullest place of the
// graph's own order. `stops` says when to look no further.
FissionTree fission_tree(const Graph& graph, std::int64_t levels,
                         const std::function<bool()>& stops = {});

// Of each node of a tree the number of its parts: 1 for one that is disabled.
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

// All moves from there, by rule and node; what they enable begins with its smallest number. None
// enables a node across an enabled one, nor one with an enabled ancestor or descendant if `nest` is
// false.
std::vector<FissionMove> fission_moves(const FissionTree& tree, const Fission& now, Enable enable,
                                       bool nest);

}  // namespace lowtide::rewrite
