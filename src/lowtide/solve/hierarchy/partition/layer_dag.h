// The input of partitioners: the layers of a graph, as a DAG.
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

// Nodes are numbered topologically: links lead from smaller to larger numbers.
struct LayerDag {
  Csr<Node> before, behind;  // by node, without duplicates, ascending
  // A tensor that forward ops of one node make. Other nodes read it, or it leaves the DAG: it is an
  // output of the graph, or is read by an op without layer.
  struct Value {
    Node maker;
    Bytes bytes;
    bool leaves;
  };
  std::vector<Value> values;
  Csr<Node> readers;              // by value: nodes other than its maker, ascending
  Csr<std::uint32_t> made, read;  // by node: values

  std::size_t size() const { return before.rows(); }
};

// The dependencies that count as links.
//
// all: a node depends on another if its forward ops do in any way, or if the backward ops of the
// other depend on its own. Every layer is a node, in the given order of their forward ops. Convex
// sets of nodes that depend on one another in one direction have the same properties in the graph.
//
// flow: only forward tensors count. The backward mirrors them, and `after` dependencies mostly have
// the same direction, but the resulting blocks must be checked. Side branches of a single layer are
// merged into their neighbour, so that the main path is visible. A layer that reads no other layer
// (a mask) is merged into its first reader, if that reads other layers. A layer without readers (a
// statistic) is merged into the only layer that it reads, if that has other readers.
enum class Links : std::uint8_t { flow, all };

struct Layers {
  Csr<OpId> ops;  // by node: its forward ops
  LayerDag dag;
};
Layers layers_of(const Graph& graph, const Phases& phases, Links links);

// One node for each group; `group` is the group of each node. Links lead from smaller to larger
// numbers if the groups are numbered topologically.
LayerDag contract(const LayerDag& dag, std::span<const Node> group, std::size_t groups);
// The subgraph of these nodes, ascending.
LayerDag induced(const LayerDag& dag, std::span<const Node> nodes);

// Adds blocks of `most` neighbouring ops, nested into larger blocks, and one outermost block in the
// root. Adds nothing for a single op.
void add_runs(BlockTree& tree, std::span<const OpId> ops, std::size_t most);

// The partition for blocks of layers. `block_of`: the innermost block of each node, in a tree
// without ops. Ops without a layer stay in the root. Ops after the backward get blocks of
// neighbours (add_runs), and so do ops of the root without links.
Partition spread(const Graph& graph, Phases phases, const Layers& layers,
                 std::span<const BlockId> block_of, BlockTree tree, std::size_t most);

}  // namespace lowtide::solve::partition
