// Graphs compared field by field.
#pragma once

#include <algorithm>
#include <string>

#include "lowtide/graph/graph.h"

namespace lowtide {

// What differs first; empty if the graphs are the same in everything that a file carries.
inline std::string difference(const Graph& a, const Graph& b) {
  const auto same = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  };
  if (a.name() != b.name()) return "name";
  if (a.tick() != b.tick()) return "tick";
  if (a.resident() != b.resident()) return "resident_bytes";
  if (a.tensor_count() != b.tensor_count() || a.op_count() != b.op_count()) return "counts";
  for (std::size_t i = 0; i < a.tensor_count(); ++i) {
    const Tensor &x = a.tensor(TensorId(i)), &y = b.tensor(TensorId(i));
    if (x.name != y.name || x.bytes != y.bytes || x.role != y.role ||
        x.releasable != y.releasable || x.shape != y.shape || x.dtype != y.dtype)
      return a.label(TensorId(i));
  }
  for (std::size_t i = 0; i < a.op_count(); ++i) {
    const OpId id(i);
    const Op &x = a.op(id), &y = b.op(id);
    if (x.name != y.name || x.kind != y.kind || x.phase != y.phase || x.origin != y.origin ||
        x.attributes != y.attributes || x.time != y.time || x.workspace != y.workspace ||
        x.recomputable != y.recomputable || x.lane != y.lane || !same(a.inputs(id), b.inputs(id)) ||
        !same(a.outputs(id), b.outputs(id)) || !same(a.after(id), b.after(id)) ||
        !same(a.mutates(id), b.mutates(id)))
      return a.label(id);
  }
  if (!same(a.outputs(), b.outputs())) return "outputs";
  if (!same(a.order(), b.order())) return "order";
  return "";
}

}  // namespace lowtide
