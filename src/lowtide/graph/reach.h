// Reachability along Graph::predecessors and successors. Every op reaches itself.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

// The ops that reach an op of the set (that an op of the set reaches), the set itself included, as
// one flag for each op. Linear.
std::vector<bool> ancestors(const Graph& graph, std::span<const OpId> of);
std::vector<bool> descendants(const Graph& graph, std::span<const OpId> of);

// Answers "does a reach b" for many pairs, exactly. Linear time to build, and linear memory. A
// query usually takes constant time, at worst a search between a and b. Refers to the graph.
// Queries use scratch space, so each thread needs its own copy.
class Reachability {
 public:
  explicit Reachability(const Graph& graph);

  bool reaches(OpId from, OpId to);
  // Neither reaches the other, and they differ.
  bool independent(OpId a, OpId b) { return !reaches(a, b) && !reaches(b, a); }

  // The number of ops that all searches so far have visited: the cost of queries beyond constant
  // time.
  std::int64_t searched() const { return searched_; }

 private:
  // For each op in one depth-first traversal: its rank in post-order, the smallest rank that it
  // reaches, and the smallest rank in its subtree; it reaches all ranks from that one up to its
  // own.
  struct Label {
    std::int32_t rank = -1, lowest = 0, subtree = 0;
  };
  static constexpr std::size_t kTraversals = 3;
  using Labels = std::array<Label, kTraversals>;
  enum class Answer : std::uint8_t { yes, no, search };

  void traverse(std::size_t traversal);
  Answer look_up(OpId from, OpId to) const;

  const Graph* graph_;
  std::vector<Labels> labels_;
  std::vector<std::size_t> next_cut_;  // for each position, that of the first cut op at or after it
  std::vector<std::uint32_t> visited_;  // the number of the last query that visited the op
  std::uint32_t query_ = 0;
  std::vector<OpId> stack_;
  std::int64_t searched_ = 0;
};

}  // namespace lowtide
