// Each term is a set of tensors that every plan must hold at one time; the largest is the floor.
// An op in place needs as much as an op with new outputs that frees the overwritten inputs
// afterwards and has that much less workspace. So least_workspace keeps every term valid.
//
// With a given order, tensors that cannot be recomputed also count from their production to the
// last first use: an output of an op that may run only once, a releasable input, and an output of
// an op that may not run again after some position. Further bounds from chains of such ops are
// left to the solver `bounds`.
#include "lowtide/solve/sequence/peak_floor.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lowtide/solve/sequence/in_place.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve {

namespace {

// While the op runs, with this workspace, beyond the bytes that are always live.
Bytes running(const Graph& graph, OpId op, Bytes workspace, const auto& counted) {
  Bytes need = workspace;
  for (TensorId id : graph.inputs(op))
    if (!counted(id)) need += graph.bytes(id);
  for (TensorId id : graph.outputs(op))
    if (!counted(id)) need += graph.bytes(id);
  return need;
}

Bytes floor_in_order(const Graph& graph, Bytes always) {
  const std::vector<std::size_t> deadlines = rerun_deadlines(graph, graph.order());
  const std::size_t end = graph.op_count();
  // The positions at which a tensor must be live: [from, past).
  std::vector<std::size_t> from(graph.tensor_count(), end), past(graph.tensor_count(), 0);
  std::vector<Bytes> change(end + 1);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.freeable(id)) continue;
    const OpId producer = graph.producer(id);
    for (OpId reader : graph.consumers(id)) past[i] = std::max(past[i], graph.position(reader) + 1);
    if (graph.is_output(id)) past[i] = end;
    from[i] = 0;
    if (producer.valid()) {
      from[i] = graph.position(producer);
      if (graph.recomputable(producer)) from[i] = std::max(from[i], deadlines[producer.index()]);
    }
    if (from[i] >= past[i]) continue;
    change[from[i]] += graph.bytes(id);
    change[past[i]] -= graph.bytes(id);
  }
  Bytes floor;
  const auto there = [&](TensorId id, std::size_t at) {
    return from[id.index()] <= at && at < past[id.index()];
  };
  for (std::size_t at = 0; at < end; ++at) {
    always += change[at];
    const OpId op = graph.order()[at];
    // A tensor that must be live now and at the next op is not overwritten; one that must be live
    // at the next op only may be recomputed in between.
    const auto ends = [&](TensorId id) { return !there(id, at) || !there(id, at + 1); };
    const Bytes workspace = graph.workspace(op) - overwritten_bytes(graph, op, ends);
    floor = std::max(floor, always + running(graph, op, workspace, [&](TensorId id) {
                              return !graph.freeable(id) || there(id, at);
                            }));
  }
  return floor;
}

Bytes floor_with(const Problem& problem, bool transfers) {
  const Graph& graph = problem.graph;
  // With a link to the host any input may be offloaded while it is not used, unless the caller
  // holds it.
  const auto always = [&](TensorId id) {
    return !graph.freeable(id) && !graph.on_host(id) && (!transfers || graph.stays(id));
  };
  Bytes fixed = graph.resident(), at_start = graph.resident(), at_end = graph.resident();
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (always(id)) fixed += graph.bytes(id);
    if (graph.is_input(id) && !graph.on_host(id)) at_start += graph.bytes(id);
    if (graph.is_output(id) || (!graph.freeable(id) && !graph.on_host(id)))
      at_end += graph.bytes(id);
  }
  Bytes floor = std::max(at_start, at_end);
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    floor =
        std::max(floor, fixed + running(graph, OpId(i), graph.least_workspace(OpId(i)), always));
  if (!transfers && problem.order == Order::given)
    floor = std::max(floor, floor_in_order(graph, fixed));
  return floor;
}

// The bytes that may be copied to the host beside those at home there.
Bytes room_on_host(const Graph& graph, Bytes host_budget) {
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.on_host(TensorId(i))) host_budget -= graph.bytes(TensorId(i));
  return std::max(host_budget, Bytes(0));
}

}  // namespace

Bytes peak_floor(const Problem& problem) {
  if (!problem.machine) return floor_with(problem, false);
  Bytes floor = floor_with(problem, true);
  // A plan that held the copied tensors on the device would need no link.
  if (problem.host_budget)
    floor = std::max(
        floor, floor_with(problem, false) - room_on_host(problem.graph, *problem.host_budget));
  return floor;
}

Bytes always_live(const Problem& problem) {
  const Graph& graph = problem.graph;
  Bytes floor = graph.resident();
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count()))
    if (graph.is_input(id) && !graph.on_host(id) &&
        (graph.stays(id) || (!graph.freeable(id) && !problem.machine)))
      floor = checked_add(floor, graph.bytes(id));
  return floor;
}

}  // namespace lowtide::solve
