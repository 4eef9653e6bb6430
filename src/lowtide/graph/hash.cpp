// One pass over the planning fields in file order.
#include "lowtide/graph/hash.h"

#include "lowtide/base/sha256.h"

namespace lowtide {

namespace {

// Graphs without them keep the hash that they had before there were any.
bool has_extensions(const Graph& graph) {
  for (std::size_t i = 0; i < graph.op_count(); ++i)
    if (!graph.in_place(OpId(i)).empty()) return true;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.tensor(TensorId(i)).stays || graph.tensor(TensorId(i)).home == Home::host)
      return true;
  return false;
}

}  // namespace

std::string graph_hash(const Graph& graph) {
  Sha256 sha;
  const auto count = [&](std::size_t n) { sha.add(static_cast<std::int64_t>(n)); };
  const auto ids = [&](const auto& list) {
    count(list.size());
    for (const auto id : list) count(id.index());
  };
  const bool extended = has_extensions(graph);
  sha.add(extended ? 2 : 1);
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
    if (!extended) continue;
    count(graph.in_place(op).size());
    for (const InPlacePair& pair : graph.in_place(op)) {
      count(pair.input.index());
      count(pair.output.index());
    }
  }
  if (extended)
    for (std::size_t i = 0; i < graph.tensor_count(); ++i)
      sha.add((graph.tensor(TensorId(i)).stays ? 1 : 0) |
              (graph.tensor(TensorId(i)).home == Home::host ? 2 : 0));
  ids(graph.outputs());
  for (OpId op : graph.order()) count(op.index());
  return "sha256:" + sha.hex();
}

}  // namespace lowtide
