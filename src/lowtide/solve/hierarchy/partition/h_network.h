// The graph of H-Partition's rounds: layers, some of which have been merged into blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/solve/hierarchy/partition/h_borders.h"
#include "lowtide/solve/hierarchy/partition/layer_dag.h"
#include "lowtide/solve/hierarchy/partition/marks.h"

namespace lowtide::solve::partition {

// A node is named by its first layer. Links lead from smaller to larger names, as long as merged
// nodes have the same predecessors outside.
class HNetwork {
 public:
  explicit HNetwork(const Layers& layers);

  std::size_t size() const { return owner_.size(); }  // names that there were at first
  bool is_node(Node name) const { return owner_[name] == name; }
  Node node_of(Node name) const;
  // The predecessors (successors) of a node, each once: all of them, or `most`. The time grows with
  // `most` only, except for nodes merged since the last call. Valid until the next call for the
  // same node.
  std::span<const Node> before(Node node, std::size_t most) { return few(before_, node, most); }
  std::span<const Node> behind(Node node, std::size_t most) { return few(behind_, node, most); }
  // 1 for a layer, 2 for a block.
  std::size_t weight(Node node) const { return weights_[node]; }
  std::size_t layers(Node node) const { return layers_[node]; }
  // The bytes of tensors that cross the border of these nodes.
  Bytes interface(std::span<const Node> nodes) { return borders_.around(nodes); }
  // Merges nodes into a block, named by the first of them. Adds nodes to `near`, among them all
  // that were linked to two or more of the merged nodes in one direction.
  void merge(std::span<const Node> nodes, std::vector<Node>& near);

 private:
  using List = std::vector<Node>;
  std::span<const Node> few(std::vector<List>& lists, Node node, std::size_t most);
  void join(std::vector<List>& lists, std::span<const Node> nodes, Node into, List& near);

  mutable std::vector<Node> owner_;  // union-find: a step towards the node that contains the name
  std::vector<std::size_t> weights_, layers_;
  std::vector<List> before_, behind_;
  Borders borders_;
  Marks seen_;
};

}  // namespace lowtide::solve::partition
