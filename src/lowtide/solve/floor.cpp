// Each term is a set of tensors that any plan must hold at one moment; the largest is the floor.
// An op that may run only once also holds, while it runs and after, every output of an earlier
// once-only op that something still needs; that chain is left to the real bounds.
#include "lowtide/solve/floor.h"

#include <algorithm>

namespace lowtide {

Bytes peak_floor(const Problem& problem) {
  const Graph& graph = problem.graph;
  const bool transfers = problem.machine.has_value();
  // With a link to the host any input may be away while it is not used.
  const auto always = [&](TensorId id) { return !transfers && !graph.freeable(id); };
  Bytes fixed = graph.resident(), at_end = graph.resident();
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (always(id)) fixed += graph.bytes(id);
    if (graph.is_output(id) || !graph.freeable(id)) at_end += graph.bytes(id);
  }
  Bytes floor = std::max(graph.resident() + graph.input_bytes(), at_end);
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    Bytes need = fixed + graph.workspace(op);
    for (TensorId id : graph.inputs(op))
      if (!always(id)) need += graph.bytes(id);
    for (TensorId id : graph.outputs(op)) need += graph.bytes(id);
    floor = std::max(floor, need);
  }
  return floor;
}

}  // namespace lowtide
