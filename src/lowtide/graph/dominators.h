// Dominators: the ops through which every path from the sources (or to the sinks) must pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

// The tree of immediate dominators of the op DAG under a virtual source before all sources, or of
// immediate post-dominators under a virtual sink after all sinks. The virtual root is an invalid
// OpId. Near-linear to build.
class DominatorTree {
 public:
  // The op nearest to `op`, other than itself, on every path to it; invalid if there is none.
  OpId parent(OpId op) const { return parent_[op.index()]; }
  // The number of ops on the way up to the root: 1 for a child of the root.
  std::int32_t depth(OpId op) const { return op.valid() ? depth_[op.index()] : 0; }
  // Whether a is b or on every path to b. O(log n).
  bool dominates(OpId a, OpId b) const;
  // The nearest op that dominates both; invalid if there is none. O(log n).
  OpId common(OpId a, OpId b) const;

 private:
  friend DominatorTree dominators(const Graph& graph);
  friend DominatorTree dominators(const Graph& graph, std::span<const std::uint8_t> among);
  friend DominatorTree post_dominators(const Graph& graph);
  explicit DominatorTree(std::size_t ops) : parent_(ops), jump_(ops), depth_(ops, 0) {}
  void hang(OpId op, OpId parent);
  OpId jump(OpId op) const { return op.valid() ? jump_[op.index()] : op; }

  std::vector<OpId> parent_, jump_;
  std::vector<std::int32_t> depth_;
};

DominatorTree dominators(const Graph& graph);
// Dominators of the subgraph of these ops (flags by op) and the links between them. Other ops are
// children of the root.
DominatorTree dominators(const Graph& graph, std::span<const std::uint8_t> among);
// `dominates(a, b)` then means that a is b, or on every path from b.
DominatorTree post_dominators(const Graph& graph);

}  // namespace lowtide
