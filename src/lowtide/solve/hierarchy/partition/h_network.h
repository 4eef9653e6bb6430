// The graph that rounds of H-Partition work on: layers, of which some have become blocks.
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

// A node is named by its first layer. Links lead from a smaller name to a larger one, as long as
// whatever leads into nodes that become one leads to all of them.
class HNetwork {
 public:
  explicit HNetwork(const Layers& layers);

  std::size_t size() const { return owner_.size(); }  // names that there were at first
  bool is_node(Node name) const { return owner_[name] == name; }
  Node node_of(Node name) const;
  // Nodes before a node, or behind it, each once: all of them, or `most`. In time that grows with
  // `most` alone, but for what was merged since. Until the next question about the same node.
  std::span<const Node> before(Node node, std::size_t most) { return few(before_, node, most); }
  std::span<const Node> behind(Node node, std::size_t most) { return few(behind_, node, most); }
  // A node for each layer, two for a block.
  std::size_t weight(Node node) const { return weights_[node]; }
  std::size_t layers(Node node) const { return layers_[node]; }
  // Bytes of tensors that cross the border of these nodes.
  Bytes interface(std::span<const Node> nodes) { return borders_.around(nodes); }
  // Nodes become one, a block, named by the first of them. To `near` are added, among others, all
  // nodes that were linked to two of them or more in one direction.
  void merge(std::span<const Node> nodes, std::vector<Node>& near);

 private:
  using List = std::vector<Node>;
  std::span<const Node> few(std::vector<List>& lists, Node node, std::size_t most);
  void join(std::vector<List>& lists, std::span<const Node> nodes, Node into, List& near);

  mutable std::vector<Node> owner_;  // a step towards the node that a name is part of
  std::vector<std::size_t> weights_, layers_;
  std::vector<List> before_, behind_;
  Borders borders_;
  Marks seen_;
};

}  // namespace lowtide::solve::partition
