// What partitioners cut: the layers of a graph, as a DAG of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/units.h"
#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"
#include "lowtide/graph/phases.h"

namespace lowtide::solve::partition {

using Node = std::uint32_t;

// Nodes are numbered topologically: links lead from a smaller number to a larger one.
struct LayerDag {
  Csr<Node> before, behind;  // of each node, without repetitions, ascending
  // Tensors that forward ops of one node make and others read, or that leave for something that is
  // no node: an output of the graph, an op that stands alone.
  struct Value {
    Node maker;
    Bytes bytes;
    bool leaves;
  };
  std::vector<Value> values;
  Csr<Node> readers;              // of each value: other nodes than its maker, ascending
  Csr<std::uint32_t> made, read;  // values of each node

  std::size_t size() const { return before.rows(); }
};

// Which dependencies are links.
//
// all: a node depends on another if its forward part does in any way, or if the other's backward
// part depends on its own. Every layer is a node, in the given order of their forward ops. Sets of
// nodes that are convex, and depend on one another in one direction, are so in the graph.
//
// flow: only where tensors flow forward; the backward mirrors that, and what is soft (`after`)
// mostly goes the same way. Blocks found so must be tried. Side branches of a single layer go with
// what they hang on, so that the way of the network can be seen: one that reads no other (a mask)
// and serves one that does, with the first that it serves, from where its tensors reach the others
// unseen; and one that serves none (a statistic) with the only one that it reads, which serves
// others.
enum class Links : std::uint8_t { flow, all };

struct Layers {
  Csr<OpId> ops;  // the forward ops of each node
  LayerDag dag;
};
Layers layers_of(const Graph& graph, const Phases& phases, Links links);

// One node for each group; `group` says that of each node. Links lead from a smaller number to a
// larger one if the groups are numbered topologically.
LayerDag contract(const LayerDag& dag, std::span<const Node> group, std::size_t groups);
// The nodes alone, ascending, with what is between them.
LayerDag induced(const LayerDag& dag, std::span<const Node> nodes);

// Blocks of neighbours, `most` in each, in blocks of blocks, all in one in the root. Nothing for a
// single op.
void add_runs(BlockTree& tree, std::span<const OpId> ops, std::size_t most);

// The blocks of ops that blocks of layers make: `block_of` says the innermost block of each node in
// a tree that has no ops yet. Ops that stand alone stay in the root; what comes behind the backward
// is in runs (add_runs), and so is what is in the root and has no links at all.
Partition spread(const Graph& graph, Phases phases, const Layers& layers,
                 std::span<const BlockId> block_of, BlockTree tree, std::size_t most);

}  // namespace lowtide::solve::partition
