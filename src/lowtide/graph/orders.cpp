// Problem: list the ops so that each comes after the ops on which it depends.
//
// Idea: remove ready ops from the sources on (A. B. Kahn, 1962), with four ways to choose among
// them. Or, for the depth-first order, walk back from the sinks (R. Tarjan, 1976) with an explicit
// stack, since a chain of 100,000 ops would overflow the call stack.
//
// Invariant: an op is ready when all its predecessors are listed.
//
// Loses: random_order is not uniform over all topological orders, whose number is #P-hard to
// compute. Orders in which many ops become ready together are drawn too rarely.
#include "lowtide/graph/orders.h"

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>

namespace lowtide {

namespace {

// `Ready` holds the ready ops, and returns them in its own order: push, pop, empty.
template <class Ready>
std::vector<OpId> kahn(const Graph& graph, Ready ready) {
  std::vector<std::size_t> waiting(graph.op_count());
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    waiting[i] = graph.predecessors(OpId(i)).size();
    if (waiting[i] == 0) ready.push(OpId(i));
  }
  std::vector<OpId> order;
  order.reserve(graph.op_count());
  while (!ready.empty()) {
    const OpId op = ready.pop();
    order.push_back(op);
    for (OpId next : graph.successors(op))
      if (--waiting[next.index()] == 0) ready.push(next);
  }
  return order;
}

class SmallestFirst {
 public:
  void push(OpId op) { heap_.push(op); }
  bool empty() const { return heap_.empty(); }
  OpId pop() {
    const OpId op = heap_.top();
    heap_.pop();
    return op;
  }

 private:
  std::priority_queue<OpId, std::vector<OpId>, std::greater<>> heap_;
};

class FirstInFirstOut {
 public:
  void push(OpId op) { items_.push_back(op); }
  bool empty() const { return next_ == items_.size(); }
  OpId pop() { return items_[next_++]; }

 private:
  std::vector<OpId> items_;
  std::size_t next_ = 0;
};

class AnyOne {
 public:
  explicit AnyOne(Random& random) : random_(random) {}
  void push(OpId op) { items_.push_back(op); }
  bool empty() const { return items_.empty(); }
  OpId pop() {
    std::swap(items_[random_.below(items_.size())], items_.back());
    const OpId op = items_.back();
    items_.pop_back();
    return op;
  }

 private:
  Random& random_;
  std::vector<OpId> items_;
};

}  // namespace

bool is_topological(const Graph& graph, std::span<const OpId> order) {
  if (order.size() != graph.op_count()) return false;
  std::vector<std::uint8_t> listed(graph.op_count(), 0);
  for (OpId op : order) {
    if (!op.valid() || op.index() >= graph.op_count() || listed[op.index()] != 0) return false;
    for (OpId before : graph.predecessors(op))
      if (listed[before.index()] == 0) return false;
    listed[op.index()] = 1;
  }
  return true;
}

std::vector<OpId> index_order(const Graph& graph) { return kahn(graph, SmallestFirst()); }

std::vector<OpId> breadth_first_order(const Graph& graph) { return kahn(graph, FirstInFirstOut()); }

std::vector<OpId> random_order(const Graph& graph, Random& random) {
  return kahn(graph, AnyOne(random));
}

std::vector<OpId> depth_first_order(const Graph& graph) {
  struct Frame {
    OpId op;
    std::size_t next = 0;  // index of the next predecessor
  };
  std::vector<OpId> order;
  order.reserve(graph.op_count());
  std::vector<std::uint8_t> seen(graph.op_count(), 0);
  std::vector<Frame> stack;
  for (OpId sink : graph.order()) {
    if (!graph.successors(sink).empty()) continue;
    stack.push_back({sink});
    seen[sink.index()] = 1;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const auto before = graph.predecessors(frame.op);
      if (frame.next == before.size()) {
        order.push_back(frame.op);
        stack.pop_back();
        continue;
      }
      const OpId next = before[frame.next++];
      if (seen[next.index()] != 0) continue;
      seen[next.index()] = 1;
      stack.push_back({next});
    }
  }
  return order;
}

}  // namespace lowtide
