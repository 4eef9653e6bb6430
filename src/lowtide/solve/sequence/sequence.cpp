// Sweeps along a sequence, and against it.
#include "lowtide/solve/sequence/sequence.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lowtide::solve {

std::vector<OpId> first_computations(const Graph& graph, std::span<const OpId> sequence) {
  std::vector<std::uint8_t> seen(graph.op_count(), 0);
  std::vector<OpId> first;
  for (OpId op : sequence)
    if (std::exchange(seen[op.index()], 1) == 0) first.push_back(op);
  return first;
}

bool follows_order(const Graph& graph, std::span<const OpId> sequence) {
  std::size_t next = 0;
  for (const OpId op : sequence) {
    if (graph.position(op) > next) return false;
    if (graph.position(op) == next) ++next;
  }
  return true;
}

std::vector<std::size_t> rerun_deadlines(const Graph& graph, std::span<const OpId> order) {
  std::vector<std::size_t> deadlines(graph.op_count(), order.size());
  const auto end = [&](OpId op, std::size_t at) {
    deadlines[op.index()] = std::min(deadlines[op.index()], at);
  };
  for (std::size_t at = 0; at < order.size(); ++at)
    for (TensorId changed : graph.mutates(order[at])) {
      for (OpId reader : graph.consumers(changed)) end(reader, at);
      if (graph.is_output(changed) && !graph.is_input(changed)) end(graph.producer(changed), at);
    }
  return deadlines;
}

std::vector<Event> without_unread(const Problem& problem, std::span<const Event> events) {
  const Graph& graph = problem.graph;
  std::vector<std::uint8_t> held(graph.op_count(), problem.order == Order::given);
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    for (OpId before : graph.after(OpId(i))) held[before.index()] = 1;
  std::vector<std::uint8_t> is_first(events.size(), 0), seen(graph.op_count(), 0);
  for (std::size_t at = 0; at < events.size(); ++at)
    is_first[at] = events[at].is_compute() && std::exchange(seen[events[at].op().index()], 1) == 0;

  std::vector<std::uint8_t> repeated(graph.op_count(), 0), wanted(graph.tensor_count(), 0);
  std::vector<std::uint8_t> copied(graph.tensor_count(), 0);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    wanted[i] = graph.is_output(id) || !(graph.freeable(id) || graph.on_host(id));
    copied[i] = graph.on_host(id);
  }
  std::vector<Event> kept;
  for (std::size_t at = events.size(); at > 0; --at) {
    const Event& event = events[at - 1];
    if (!event.is_compute()) {
      const TensorId id = event.tensor();
      const bool fetch = event.kind == Event::Kind::fetch;
      if (fetch ? std::exchange(wanted[id.index()], 0) == 0 : copied[id.index()] == 0) continue;
      kept.push_back(event);
      if (!fetch) {
        wanted[id.index()] = 1;
        continue;
      }
      // The copy is made where the tensor is first computed.
      copied[id.index()] = 1;
      if (!graph.is_input(id)) held[graph.producer(id).index()] = 1;
      continue;
    }
    const OpId op = event.op();
    bool needed = is_first[at - 1] != 0 && (repeated[op.index()] == 0 || held[op.index()] != 0);
    for (TensorId output : graph.outputs(op))
      needed |= std::exchange(wanted[output.index()], 0) != 0;
    if (!needed) continue;
    kept.push_back(event);
    repeated[op.index()] = 1;
    for (TensorId input : graph.inputs(op)) wanted[input.index()] = 1;
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

std::vector<OpId> without_unread(const Problem& problem, std::span<const OpId> sequence) {
  return computations(without_unread(problem, events_from(sequence)));
}

}  // namespace lowtide::solve
