// Graphs of known shape, of any size.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/graph/builder.h"

namespace lowtide {

// One op for each number below `ops`, each making the tensor of its number out of those listed.
inline Graph graph_of_edges(std::size_t ops,
                            const std::vector<std::pair<std::size_t, std::size_t>>& edges) {
  std::vector<OpLinks> links(ops);
  GraphBuilder builder;
  for (std::size_t i = 0; i < ops; ++i) {
    Tensor tensor;
    tensor.bytes = Bytes(1);
    builder.add_tensor(std::move(tensor));
    links[i].outputs = {static_cast<std::int64_t>(i)};
  }
  for (const auto& [from, to] : edges) links[to].inputs.push_back(static_cast<std::int64_t>(from));
  for (std::size_t i = 0; i < ops; ++i) {
    Op op;
    op.time = Ticks(1);
    builder.add_op(std::move(op), links[i]);
  }
  return builder.build();
}

inline Graph chain_graph(std::size_t ops) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t i = 1; i < ops; ++i) edges.emplace_back(i - 1, i);
  return graph_of_edges(ops, edges);
}

// Forward 0 .. n-1, backward n .. 2n-1: op 2n-1-i reads the output of i too.
inline Graph ladder_graph(std::size_t depth) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (std::size_t i = 1; i < 2 * depth; ++i) edges.emplace_back(i - 1, i);
  for (std::size_t i = 0; i + 1 < depth; ++i) edges.emplace_back(i, 2 * depth - 1 - i);
  return graph_of_edges(2 * depth, edges);
}

inline std::vector<OpId> op_ids(std::initializer_list<std::size_t> indices) {
  std::vector<OpId> ids;
  for (std::size_t i : indices) ids.emplace_back(i);
  return ids;
}

}  // namespace lowtide
