// Sweeps along a sequence, and against it.
#include "lowtide/solve/sequence.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lowtide {

std::vector<std::vector<OpId>> orders_to_try(const Context& context) {
  const Graph& graph = context.problem().graph;
  std::vector<std::vector<OpId>> orders;
  orders.emplace_back(graph.order().begin(), graph.order().end());
  if (context.problem().order == Order::given || context.starts().empty()) return orders;
  std::vector<OpId> first = first_computations(graph, computations(context.starts().front()));
  if (first != orders.front()) orders.push_back(std::move(first));
  return orders;
}

std::vector<OpId> first_computations(const Graph& graph, std::span<const OpId> sequence) {
  std::vector<std::uint8_t> seen(graph.op_count(), 0);
  std::vector<OpId> first;
  for (OpId op : sequence)
    if (std::exchange(seen[op.index()], 1) == 0) first.push_back(op);
  return first;
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

std::vector<OpId> without_unread(const Problem& problem, std::span<const OpId> sequence) {
  const Graph& graph = problem.graph;
  std::vector<std::uint8_t> held(graph.op_count(), problem.order == Order::given);
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    for (OpId before : graph.after(OpId(i))) held[before.index()] = 1;
  std::vector<std::uint8_t> is_first(sequence.size(), 0), seen(graph.op_count(), 0);
  for (std::size_t at = 0; at < sequence.size(); ++at)
    is_first[at] = std::exchange(seen[sequence[at].index()], 1) == 0;

  std::vector<std::uint8_t> repeated(graph.op_count(), 0), wanted(graph.tensor_count(), 0);
  for (TensorId output : graph.outputs()) wanted[output.index()] = 1;
  std::vector<OpId> kept;
  for (std::size_t at = sequence.size(); at > 0; --at) {
    const OpId op = sequence[at - 1];
    bool needed = is_first[at - 1] != 0 && (repeated[op.index()] == 0 || held[op.index()] != 0);
    for (TensorId output : graph.outputs(op))
      needed |= std::exchange(wanted[output.index()], 0) != 0;
    if (!needed) continue;
    kept.push_back(op);
    repeated[op.index()] = 1;
    for (TensorId input : graph.inputs(op)) wanted[input.index()] = 1;
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace lowtide
