// Problem: answer reachability queries on a DAG without the n^2 bits of the transitive closure.
//
// Idea: number the ops in the post-order of a few depth-first traversals that differ in the order
// of children. An op reaches only ranks in [lowest, rank]. So if one interval does not contain
// another, the answer is no; if the rank is in the interval of the subtree, it is yes. Two ops with
// a cut op (cuts.h) between them are connected. The remaining queries are answered by a search that
// is pruned by the same rules.
//
// Source: H. Yildirim, V. Chaoji, M. Zaki, "GRAIL", VLDB 2010; the interval of the subtree as in M.
// Merz, P. Sanders, "PReaCH", ESA 2014.
//
// Invariant: both answers are exact. A search visits only ops that may lie between the two.
//
// Loses: on wide random layers, where every interval covers nearly everything: a search may visit
// most ops between the two layers.
#include "lowtide/graph/reach.h"

#include <algorithm>

#include "lowtide/graph/cuts.h"

namespace lowtide {

namespace {

template <class Next>
std::vector<bool> spread(const Graph& graph, std::span<const OpId> of, Next next) {
  std::vector<bool> reached(graph.op_count(), false);
  std::vector<OpId> stack;
  const auto reach = [&](OpId op) {
    if (reached[op.index()]) return;
    reached[op.index()] = true;
    stack.push_back(op);
  };
  for (OpId op : of) reach(op);
  while (!stack.empty()) {
    const OpId op = stack.back();
    stack.pop_back();
    for (OpId other : next(op)) reach(other);
  }
  return reached;
}

// The k-th of n children in a traversal: in the given order, in reverse, or from a position that
// differs from op to op.
std::size_t child_at(std::size_t traversal, std::size_t op, std::size_t k, std::size_t n) {
  if (traversal == 0) return k;
  if (traversal == 1) return n - 1 - k;
  const std::uint64_t scattered = (static_cast<std::uint64_t>(op) + 1) * 0x9e3779b97f4a7c15u;
  return (static_cast<std::size_t>(scattered >> 33) + k) % n;
}

}  // namespace

std::vector<bool> ancestors(const Graph& graph, std::span<const OpId> of) {
  return spread(graph, of, [&](OpId op) { return graph.predecessors(op); });
}

std::vector<bool> descendants(const Graph& graph, std::span<const OpId> of) {
  return spread(graph, of, [&](OpId op) { return graph.successors(op); });
}

Reachability::Reachability(const Graph& graph)
    : graph_(&graph), labels_(graph.op_count()), visited_(graph.op_count(), 0) {
  for (std::size_t traversal = 0; traversal < kTraversals; ++traversal) traverse(traversal);
  next_cut_.assign(graph.op_count(), graph.op_count());
  for (OpId cut : cut_ops(graph)) next_cut_[graph.position(cut)] = graph.position(cut);
  for (std::size_t at = graph.op_count(); at-- > 1;)
    next_cut_[at - 1] = std::min(next_cut_[at - 1], next_cut_[at]);
}

void Reachability::traverse(std::size_t traversal) {
  struct Frame {
    OpId op;
    std::size_t next = 0;
  };
  std::int32_t ranks = 0;
  std::vector<Frame> stack;
  std::vector<OpId> sources;
  for (OpId op : graph_->order())
    if (graph_->predecessors(op).empty()) sources.push_back(op);
  const auto label = [&](OpId op) -> Label& { return labels_[op.index()][traversal]; };
  std::vector<std::uint8_t> entered(graph_->op_count(), 0);
  const auto enter = [&](OpId op) {
    entered[op.index()] = 1;
    label(op).lowest = label(op).subtree = ranks;
    stack.push_back({op});
  };
  for (std::size_t k = 0; k < sources.size(); ++k) {
    enter(sources[child_at(traversal, 0, k, sources.size())]);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const OpId op = frame.op;
      const auto children = graph_->successors(op);
      if (frame.next == children.size()) {
        label(op).rank = ranks++;
        stack.pop_back();
        if (!stack.empty()) {
          Label& parent = label(stack.back().op);
          parent.lowest = std::min(parent.lowest, label(op).lowest);
        }
        continue;
      }
      const OpId child = children[child_at(traversal, op.index(), frame.next++, children.size())];
      // The child was visited before, so its traversal has ended: in a DAG no ancestor of an op is
      // its child.
      if (entered[child.index()] != 0)
        label(op).lowest = std::min(label(op).lowest, label(child).lowest);
      else
        enter(child);
    }
  }
}

Reachability::Answer Reachability::look_up(OpId from, OpId to) const {
  if (graph_->position(from) >= graph_->position(to)) return from == to ? Answer::yes : Answer::no;
  if (next_cut_[graph_->position(from)] <= graph_->position(to)) return Answer::yes;
  bool inside = false;
  for (std::size_t traversal = 0; traversal < kTraversals; ++traversal) {
    const Label& a = labels_[from.index()][traversal];
    const Label& b = labels_[to.index()][traversal];
    if (b.lowest < a.lowest || b.rank > a.rank) return Answer::no;
    inside = inside || b.rank >= a.subtree;
  }
  return inside ? Answer::yes : Answer::search;
}

bool Reachability::reaches(OpId from, OpId to) {
  const Answer answer = look_up(from, to);
  if (answer != Answer::search) return answer == Answer::yes;
  if (++query_ == 0) {
    std::fill(visited_.begin(), visited_.end(), 0);
    query_ = 1;
  }
  stack_.assign(1, from);
  while (!stack_.empty()) {
    const OpId op = stack_.back();
    stack_.pop_back();
    for (OpId next : graph_->successors(op)) {
      if (visited_[next.index()] == query_) continue;
      visited_[next.index()] = query_;
      ++searched_;
      const Answer there = look_up(next, to);
      if (there == Answer::yes) return true;
      if (there == Answer::search) stack_.push_back(next);
    }
  }
  return false;
}

}  // namespace lowtide
