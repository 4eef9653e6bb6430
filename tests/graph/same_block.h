// What an equal block is, in plain words of code.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

struct OpBlock {
  const Graph& graph;
  std::vector<OpId> ops;

  std::ptrdiff_t index(OpId op) const {
    const auto found = std::ranges::find(ops, op);
    return found == ops.end() ? -1 : found - ops.begin();
  }
  bool leaves(TensorId tensor) const {
    return graph.is_output(tensor) ||
           std::ranges::any_of(graph.consumers(tensor),
                               [&](OpId reader) { return index(reader) < 0; });
  }
};

inline bool alike(const Tensor& a, const Tensor& b) {
  return a.bytes == b.bytes && a.shape == b.shape && a.dtype == b.dtype;
}

inline std::vector<std::ptrdiff_t> places(std::span<const TensorId> links,
                                          std::span<const TensorId> tensors) {
  std::vector<std::ptrdiff_t> list;
  for (const TensorId tensor : tensors)
    list.push_back(std::ranges::find(links, tensor) - links.begin());
  std::ranges::sort(list);
  return list;
}

// Whether the blocks correspond place by place, by the definition in the header.
inline bool correspond(const OpBlock& a, const OpBlock& b) {
  if (a.ops.size() != b.ops.size()) return false;
  std::map<TensorId, TensorId> there, back;
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    const OpId x = a.ops[i], y = b.ops[i];
    const Op &p = a.graph.op(x), &q = b.graph.op(y);
    if (p.kind != q.kind || p.arguments != q.arguments || p.workspace != q.workspace ||
        a.graph.recomputable(x) != b.graph.recomputable(y) || p.attributes != q.attributes)
      return false;
    const auto reads = a.graph.inputs(x), reads2 = b.graph.inputs(y);
    const auto makes = a.graph.outputs(x), makes2 = b.graph.outputs(y);
    if (reads.size() != reads2.size() || makes.size() != makes2.size()) return false;
    if (places(reads, a.graph.mutates(x)) != places(reads2, b.graph.mutates(y))) return false;
    const auto pairs = [](const Graph& graph, OpId op) {
      std::set<std::array<std::ptrdiff_t, 2>> list;
      const auto in = graph.inputs(op), out = graph.outputs(op);
      for (const InPlacePair& pair : graph.in_place(op))
        list.insert({std::ranges::find(in, pair.input) - in.begin(),
                     std::ranges::find(out, pair.output) - out.begin()});
      return list;
    };
    if (pairs(a.graph, x) != pairs(b.graph, y)) return false;
    const auto same = [&](TensorId s, TensorId t) {
      return alike(a.graph.tensor(s), b.graph.tensor(t)) &&
             there.try_emplace(s, t).first->second == t &&
             back.try_emplace(t, s).first->second == s;
    };
    for (std::size_t k = 0; k < reads.size(); ++k) {
      const OpId from = a.graph.producer(reads[k]), from2 = b.graph.producer(reads2[k]);
      if (!same(reads[k], reads2[k]) || a.index(from) != b.index(from2)) return false;
    }
    for (std::size_t k = 0; k < makes.size(); ++k)
      if (!same(makes[k], makes2[k]) || a.leaves(makes[k]) != b.leaves(makes2[k])) return false;
    std::set<std::ptrdiff_t> after, after2;
    for (const OpId op : a.graph.after(x)) after.insert(a.index(op));
    for (const OpId op : b.graph.after(y)) after2.insert(b.index(op));
    after.erase(-1), after2.erase(-1);
    if (after != after2) return false;
  }
  return true;
}

}  // namespace lowtide
