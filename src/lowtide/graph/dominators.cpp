// Problem: immediate dominators of a DAG.
//
// Idea: process the ops in topological order. The immediate dominator of an op is the lowest common
// ancestor of its predecessors in the tree built so far. Every op stores its parent and one jump
// further up, whose length depends only on its depth, so two ops climb together in O(log n).
//
// Source: K. Cooper, T. Harvey, K. Kennedy, "A simple, fast dominance algorithm", 2001, which needs
// one pass on a DAG; jumps as in E. Myers, "An applicative random-access stack", 1983.
//
// Invariant: when an op is added to the tree, all its predecessors are in it.
//
// Loses: no relevant case. A linear-time algorithm exists, but is much longer.
#include "lowtide/graph/dominators.h"

#include <utility>
#include <vector>

namespace lowtide {

void DominatorTree::hang(OpId op, OpId parent) {
  parent_[op.index()] = parent;
  depth_[op.index()] = depth(parent) + 1;
  const OpId near = jump(parent), far = jump(near);
  const bool equal = depth(parent) - depth(near) == depth(near) - depth(far);
  jump_[op.index()] = equal && parent.valid() ? far : parent;
}

OpId DominatorTree::common(OpId a, OpId b) const {
  if (depth(a) < depth(b)) std::swap(a, b);
  while (depth(a) > depth(b)) a = depth(jump(a)) >= depth(b) ? jump(a) : parent(a);
  // Jumps from equal depths have equal lengths.
  while (a != b) {
    const bool apart = jump(a) != jump(b);
    a = apart ? jump(a) : parent(a);
    b = apart ? jump(b) : parent(b);
  }
  return a;
}

bool DominatorTree::dominates(OpId a, OpId b) const {
  while (depth(b) > depth(a)) b = depth(jump(b)) >= depth(a) ? jump(b) : parent(b);
  return a == b;
}

namespace {

// The lowest common ancestor of all of `ops`; the root if there are none.
OpId common_of(const DominatorTree& tree, std::span<const OpId> ops) {
  if (ops.empty()) return OpId();
  OpId common = ops.front();
  for (OpId op : ops.subspan(1)) {
    if (!common.valid()) break;
    common = tree.common(common, op);
  }
  return common;
}

}  // namespace

DominatorTree dominators(const Graph& graph) {
  DominatorTree tree(graph.op_count());
  for (OpId op : graph.order()) tree.hang(op, common_of(tree, graph.predecessors(op)));
  return tree;
}

DominatorTree dominators(const Graph& graph, std::span<const std::uint8_t> among) {
  DominatorTree tree(graph.op_count());
  std::vector<OpId> before;
  for (const OpId op : graph.order()) {
    before.clear();
    if (among[op.index()] != 0)
      for (const OpId earlier : graph.predecessors(op))
        if (among[earlier.index()] != 0) before.push_back(earlier);
    tree.hang(op, common_of(tree, before));
  }
  return tree;
}

DominatorTree post_dominators(const Graph& graph) {
  DominatorTree tree(graph.op_count());
  const auto order = graph.order();
  for (std::size_t i = order.size(); i-- > 0;)
    tree.hang(order[i], common_of(tree, graph.successors(order[i])));
  return tree;
}

}  // namespace lowtide
