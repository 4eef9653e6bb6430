// The graph that rounds of H-Partition work on: layers, of which some have become blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/base/units.h"
#include "lowtide/solve/hierarchy/partition/layer_dag.h"

namespace lowtide::solve::partition {

// Marks that fall away all at once.
class Marks {
 public:
  explicit Marks(std::size_t count) : marks_(count, 0) {}
  void clear() { ++round_; }
  bool operator[](std::size_t i) const { return marks_[i] == round_; }
  // Whether it was new.
  bool add(std::size_t i) { return std::exchange(marks_[i], round_) != round_; }

 private:
  std::vector<std::uint32_t> marks_;
  std::uint32_t round_ = 1;
};

// A node is named by its first layer. Links lead from a smaller name to a larger one, as long as
// whatever leads into nodes that become one leads to all of them.
class HNetwork {
 public:
  explicit HNetwork(const Layers& layers);

  std::size_t size() const { return owner_.size(); }  // names that there were at first
  bool is_node(Node name) const { return owner_[name] == name; }
  Node node_of(Node name) const;
  // The nodes before a node, each once; until the next merge.
  std::span<const Node> before(Node node);
  // The only node behind this one, if there is one and no more; else itself. In constant time, but
  // for what was merged since.
  Node only_behind(Node node);
  // A node for each layer, two for a block.
  std::size_t weight(Node node) const { return weights_[node]; }
  std::size_t layers(Node node) const { return layers_[node]; }

  // Bytes of tensors that cross the border of these nodes.
  Bytes interface(std::span<const Node> nodes);
  // Nodes become one, a block, named by the first of them. To `near` are added, among others, all
  // nodes that were linked to two of them or more in one direction.
  void merge(std::span<const Node> nodes, std::vector<Node>& near);

 private:
  using List = std::vector<Node>;
  void join(std::vector<List>& lists, std::span<const Node> nodes, Node into, List& near);
  void resolve(List& list, Node without);
  bool leaves(std::uint32_t value);

  const LayerDag& dag_;
  mutable std::vector<Node> owner_;  // a step towards the node that a name is part of
  std::vector<std::size_t> weights_, layers_;
  std::vector<List> before_, behind_, made_, read_;
  std::vector<List> readers_;  // of each value
  std::uint32_t merges_ = 0;
  std::vector<std::uint32_t> resolved_;  // after how many merges the list before was put in order
  Marks among_, seen_;
};

}  // namespace lowtide::solve::partition
