// Problem: immediate dominators of a DAG.
// Idea: take the ops in topological order; the immediate dominator of an op is the lowest common
// ancestor, in the tree built so far, of its predecessors. Every op keeps its parent and one jump
// further up, of a length that depends on its depth alone, so that two climb together in O(log n).
// Source: K. Cooper, T. Harvey, K. Kennedy, "A simple, fast dominance algorithm", 2001, of which a
// DAG needs one pass; jumps as in E. Myers, "An applicative random-access stack", 1983.
// Invariant: when an op is hung into the tree, all its predecessors are in it.
// Loses: to nothing on DAGs that matter here; a linear-time algorithm exists and is far longer.
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
  // At equal depths jumps have equal lengths.
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
