// Ready ops are in a heap with lazy keys: the key of an op changes only when one of its tensors has
// one reader left (or, from the end, reaches its first reader), and then a new entry is pushed.
#include "lowtide/solve/order/order_lists.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace lowtide::solve::order {

namespace {

struct Entry {
  std::int64_t growth;  // bytes live after the op minus before it; from the end, the opposite
  std::size_t position;
  OpId op;
  bool operator>(const Entry& other) const {
    return std::tie(growth, position) > std::tie(other.growth, other.position);
  }
};
using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

bool stays(const Graph& graph, TensorId id) { return graph.is_output(id) || !graph.freeable(id); }

// Repeatedly takes the ready op that increases the live bytes least, from the beginning or from the
// end.
class ListScheduler {
 public:
  ListScheduler(const Graph& graph, bool from_the_end)
      : graph_(graph),
        from_the_end_(from_the_end),
        growth_(graph.op_count(), 0),
        waiting_(graph.op_count()),
        done_(graph.op_count(), 0) {}

  // As in Entry.
  std::int64_t& growth(OpId op) { return growth_[op.index()]; }
  // Updates the growth of an op.
  void renew(OpId op) {
    if (waiting_[op.index()] == 0 && done_[op.index()] == 0) push(op);
  }
  // The ops in the order in which they are taken; `taken` sees each op and changes the growth of
  // others. Empty if the limits stop it.
  template <class Taken>
  std::vector<OpId> run(Limits& limits, Taken taken);

 private:
  void push(OpId op) {
    const std::size_t position = graph_.position(op);
    ready_.push({growth(op), from_the_end_ ? graph_.op_count() - position : position, op});
  }
  auto before(OpId op) const {
    return from_the_end_ ? graph_.successors(op) : graph_.predecessors(op);
  }
  auto after(OpId op) const {
    return from_the_end_ ? graph_.predecessors(op) : graph_.successors(op);
  }

  const Graph& graph_;
  bool from_the_end_;
  std::vector<std::int64_t> growth_;
  std::vector<std::size_t> waiting_;  // number of missing predecessors
  std::vector<std::uint8_t> done_;
  Heap ready_;
};

template <class Taken>
std::vector<OpId> ListScheduler::run(Limits& limits, Taken taken) {
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    waiting_[i] = before(OpId(i)).size();
    if (waiting_[i] == 0) push(OpId(i));
  }
  std::vector<OpId> order;
  order.reserve(waiting_.size());
  while (!ready_.empty()) {
    const Entry entry = ready_.top();
    ready_.pop();
    if (limits.spend()) return {};
    if (done_[entry.op.index()] != 0 || entry.growth != growth(entry.op)) continue;
    done_[entry.op.index()] = 1;
    order.push_back(entry.op);
    limits.spend(static_cast<std::int64_t>(graph_.inputs(entry.op).size() / 16));
    taken(entry.op);
    for (OpId next : after(entry.op))
      if (--waiting_[next.index()] == 0) push(next);
  }
  return order;
}

}  // namespace

std::vector<OpId> list_order(const Graph& graph, Limits& limits) {
  ListScheduler scheduler(graph, false);
  // By tensor: the number of remaining readers, and the sum of their indices, which identifies the
  // last one.
  std::vector<std::size_t> readers(graph.tensor_count()), reader_sum(graph.tensor_count(), 0);
  const auto last_reader = [&](TensorId id) {
    if (readers[id.index()] == 1 && !stays(graph, id))
      scheduler.growth(OpId(reader_sum[id.index()])) -= graph.bytes(id).count();
  };
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    readers[i] = graph.consumers(id).size();
    for (OpId reader : graph.consumers(id)) reader_sum[i] += reader.index();
    last_reader(id);
    const bool remains = readers[i] > 0 || graph.is_output(id);
    if (graph.producer(id).valid() && remains)
      scheduler.growth(graph.producer(id)) += graph.bytes(id).count();
  }
  return scheduler.run(limits, [&](OpId op) {
    for (TensorId input : graph.inputs(op)) {
      --readers[input.index()];
      reader_sum[input.index()] -= op.index();
      if (readers[input.index()] != 1) continue;
      last_reader(input);
      scheduler.renew(OpId(reader_sum[input.index()]));
    }
  });
}

std::vector<OpId> reverse_list_order(const Graph& graph, Limits& limits) {
  ListScheduler scheduler(graph, true);
  std::vector<std::uint8_t> live(graph.tensor_count(), 0);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) live[i] = stays(graph, TensorId(i));
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    for (TensorId input : graph.inputs(OpId(i)))
      if (live[input.index()] == 0) scheduler.growth(OpId(i)) += graph.bytes(input).count();
    for (TensorId output : graph.outputs(OpId(i)))
      if (live[output.index()] != 0) scheduler.growth(OpId(i)) -= graph.bytes(output).count();
  }
  std::vector<OpId> order = scheduler.run(limits, [&](OpId op) {
    for (TensorId input : graph.inputs(op)) {
      if (live[input.index()] != 0) continue;
      live[input.index()] = 1;
      const std::int64_t bytes = graph.bytes(input).count();
      limits.spend(static_cast<std::int64_t>(graph.consumers(input).size() / 16));
      for (OpId reader : graph.consumers(input)) {
        scheduler.growth(reader) -= bytes;
        scheduler.renew(reader);
      }
      if (graph.producer(input).valid()) scheduler.growth(graph.producer(input)) -= bytes;
    }
  });
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<OpId> sethi_ullman_order(const Graph& graph, Limits& limits) {
  const std::size_t ops = graph.op_count();
  // The bytes needed to reach an op if everything else stood still: a label like Sethi and
  // Ullman's.
  std::vector<std::int64_t> need(ops, 0);
  std::vector<std::vector<OpId>> inputs(ops);
  for (OpId op : graph.order()) {
    auto& before = inputs[op.index()];
    before.assign(graph.predecessors(op).begin(), graph.predecessors(op).end());
    if (limits.spend(static_cast<std::int64_t>(1 + before.size() / 16))) return {};
    const auto made = [&](OpId id) {
      std::int64_t sum = 0;
      for (TensorId output : graph.outputs(id)) sum += graph.bytes(output).count();
      return sum;
    };
    std::stable_sort(before.begin(), before.end(), [&](OpId a, OpId b) {
      return need[a.index()] - made(a) > need[b.index()] - made(b);
    });
    std::int64_t held = 0, most = 0;
    for (OpId id : before) {
      most = std::max(most, held + need[id.index()]);
      held += made(id);
    }
    need[op.index()] = std::max(most, held + made(op) + graph.least_workspace(op).count());
  }
  std::vector<std::uint8_t> entered(ops, 0);
  std::vector<std::pair<OpId, std::size_t>> stack;
  std::vector<OpId> order;
  order.reserve(ops);
  for (OpId root : graph.order()) {
    if (!graph.successors(root).empty() || entered[root.index()] != 0) continue;
    stack.emplace_back(root, 0);
    entered[root.index()] = 1;
    while (!stack.empty()) {
      if (limits.spend()) return {};
      auto& [op, next] = stack.back();
      const auto& before = inputs[op.index()];
      if (next < before.size()) {
        const OpId child = before[next++];
        if (std::exchange(entered[child.index()], 1) == 0) stack.emplace_back(child, 0);
        continue;
      }
      order.push_back(op);
      stack.pop_back();
    }
  }
  return order;
}

}  // namespace lowtide::solve::order
