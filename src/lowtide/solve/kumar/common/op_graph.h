// The graph as Kumar et al. read it: ops are nodes, with an edge from the producer of a tensor to
// each of its readers. Schedules ignore bytes; plans that are made of them do not.
#pragma once

#include <cstdint>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/graph/graph.h"

namespace lowtide::solve::kumar {

struct OpGraph {
  Csr<OpId> makers;          // of each op's inputs, without repetitions, by position
  std::vector<OpId> finals;  // what nothing reads or what makes an output: together the paper's f

  // With a spine each op reads the one before it in the given order, as if it had to.
  OpGraph(const Graph& graph, bool spine);
};

// Of each op, in the given order.
std::vector<std::int32_t> positions_of(const Graph& graph);

// The same without directions: neighbours of each node, ascending.
using Neighbours = std::vector<std::vector<std::int32_t>>;
Neighbours undirected(const OpGraph& graph);

}  // namespace lowtide::solve::kumar
