// Makes bit sets from a graph.
#include "lowtide/solve/exhaustive/rules.h"

#include <bit>

namespace lowtide::solve::exhaustive {

namespace {

std::size_t lowest(Mask mask) { return static_cast<std::size_t>(std::countr_zero(mask)); }

}  // namespace

Bytes OpRules::overwritten(Mask gone) const {
  Bytes sum;
  for (const Place& place : places)
    if ((place.inputs & gone) != 0) sum += place.bytes;
  return sum;
}

bool Rules::hold(const Graph& graph) {
  if (graph.op_count() > kMostOps) return false;
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) tensors += graph.freeable(TensorId(i));
  return tensors <= kMostTensors;
}

Rules::Rules(const Problem& problem) : always(problem.graph.resident()), budget(problem.budget) {
  const Graph& graph = problem.graph;
  std::vector<Mask> mask(graph.tensor_count(), 0);
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.freeable(id)) {
      always += graph.bytes(id);
      continue;
    }
    mask[i] = bit(bytes.size());
    if (graph.is_input(id)) start |= mask[i];
    if (graph.is_output(id)) kept |= mask[i];
    bytes.push_back(graph.bytes(id));
    maker.push_back(graph.is_input(id) ? SIZE_MAX : graph.producer(id).index());
  }
  readers.assign(bytes.size(), 0);
  std::vector<Mask> mutators(graph.tensor_count(), 0);
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    for (const TensorId changed : graph.mutates(OpId(i))) mutators[changed.index()] |= bit(i);
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId id(i);
    OpRules op;
    op.again = graph.recomputable(id);
    op.time = graph.time(id);
    op.bytes = graph.workspace(id);
    for (const TensorId input : graph.inputs(id)) {
      op.needs |= mask[input.index()];
      op.barred_by |= mutators[input.index()];
    }
    for (const TensorId output : graph.outputs(id)) {
      op.makes |= mask[output.index()];
      op.bytes += graph.bytes(output);
      if (graph.is_output(output)) op.barred_by |= mutators[output.index()];
      Mask over = 0;
      for (const InPlacePair& pair : graph.overwrites(id))
        if (pair.output == output) over |= mask[pair.input.index()];
      if (over != 0) op.places.push_back({over, graph.bytes(output)});
    }
    for (const OpId before : graph.after(id)) op.after |= bit(before.index());
    for (Mask left = op.needs; left != 0; left &= left - 1) readers[lowest(left)] |= bit(i);
    ops.push_back(std::move(op));
  }
  if (problem.order == Order::given)
    for (const OpId id : graph.order()) turn.push_back(id.index());
}

bool Rules::may_compute(std::size_t i, Mask computed, Mask live) const {
  const OpRules& op = ops[i];
  if (!may_run(i, computed)) return false;
  if ((computed & bit(i)) == 0 && !turn.empty() &&
      turn[static_cast<std::size_t>(std::popcount(computed))] != i)
    return false;
  return (op.needs & ~live) == 0 && (op.makes & live) == 0 && (op.after & ~computed) == 0;
}

Mask Rules::without_dead(Mask live, Mask computed) const {
  Mask rest = live;
  for (Mask left = live & ~kept; left != 0; left &= left - 1) {
    bool read = false;
    for (Mask by = readers[lowest(left)]; by != 0 && !read; by &= by - 1)
      read = may_run(lowest(by), computed);
    if (!read) rest &= ~(left & -left);
  }
  return rest;
}

Mask Rules::irreplaceable(Mask tensors, Mask computed) const {
  Mask found = 0;
  for (Mask left = tensors; left != 0; left &= left - 1) {
    const std::size_t tensor = lowest(left), by = maker[tensor];
    const bool needed = (kept & bit(tensor)) != 0 || (readers[tensor] & ~computed) != 0;
    if (needed && (by == SIZE_MAX || !may_run(by, computed))) found |= bit(tensor);
  }
  return found;
}

Bytes Rules::live_bytes(Mask live) const {
  Bytes sum = always;
  for (Mask left = live; left != 0; left &= left - 1) sum += bytes[lowest(left)];
  return sum;
}

}  // namespace lowtide::solve::exhaustive
