// One pass over the planning fields in file order.
#include "lowtide/graph/hash.h"

#include "lowtide/base/sha256.h"

namespace lowtide {

std::string graph_hash(const Graph& graph) {
  Sha256 sha;
  const auto count = [&](std::size_t n) { sha.add(static_cast<std::int64_t>(n)); };
  const auto ids = [&](const auto& list) {
    count(list.size());
    for (const auto id : list) count(id.index());
  };
  sha.add(1);
  count(graph.tensor_count());
  count(graph.op_count());
  sha.add(graph.resident().count());
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    sha.add(graph.bytes(TensorId(i)).count());
    sha.add(graph.tensor(TensorId(i)).releasable ? 1 : 0);
  }
  for (std::size_t i = 0; i < graph.op_count(); ++i) {
    const OpId op(i);
    sha.add(graph.time(op).count());
    sha.add(graph.workspace(op).count());
    sha.add((graph.op(op).recomputable ? 1 : 0) | (graph.is_barrier(op) ? 2 : 0));
    ids(graph.inputs(op));
    ids(graph.outputs(op));
    ids(graph.after(op));
    ids(graph.mutates(op));
  }
  ids(graph.outputs());
  for (OpId op : graph.order()) count(op.index());
  return "sha256:" + sha.hex();
}

}  // namespace lowtide
