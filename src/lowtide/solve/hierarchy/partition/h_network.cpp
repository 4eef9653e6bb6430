// Names form a union-find forest. Lists of links are compacted when they are next read.
#include "lowtide/solve/hierarchy/partition/h_network.h"

#include <algorithm>
#include <utility>

namespace lowtide::solve::partition {

namespace {

template <class Rows>
std::vector<std::vector<Node>> lists_of(const Rows& rows) {
  std::vector<std::vector<Node>> lists(rows.rows());
  for (std::size_t i = 0; i < lists.size(); ++i) lists[i].assign(rows[i].begin(), rows[i].end());
  return lists;
}

}  // namespace

HNetwork::HNetwork(const Layers& layers)
    : before_(lists_of(layers.dag.before)),
      behind_(lists_of(layers.dag.behind)),
      borders_(layers.dag),
      seen_(layers.dag.size()) {
  for (Node node = 0; node < layers.dag.size(); ++node) {
    owner_.push_back(node);
    weights_.push_back(layers.ops[node].size());
    layers_.push_back(layers.ops[node].size());
  }
}

Node HNetwork::node_of(Node name) const {
  while (owner_[name] != name) name = owner_[name] = owner_[owner_[name]];
  return name;
}

// Every step finds a node or removes an item from the list.
std::span<const Node> HNetwork::few(std::vector<List>& lists, Node node, std::size_t most) {
  List& list = lists[node];
  seen_.clear();
  seen_.add(node);
  std::size_t found = 0;
  while (found < std::min(most, list.size())) {
    const Node other = node_of(list[found]);
    if (seen_.add(other)) {
      list[found++] = other;
    } else {
      list[found] = list.back();
      list.pop_back();
    }
  }
  return std::span(list).first(found);
}

// The longest list absorbs the others, so that no item moves often.
void HNetwork::join(std::vector<List>& lists, std::span<const Node> nodes, Node into, List& near) {
  const Node longest =
      *std::ranges::max_element(nodes, {}, [&](Node n) { return lists[n].size(); });
  std::swap(lists[into], lists[longest]);
  for (const Node node : nodes) {
    if (node == into) continue;
    const List list = std::exchange(lists[node], {});
    near.insert(near.end(), list.begin(), list.end());
    lists[into].insert(lists[into].end(), list.begin(), list.end());
  }
}

void HNetwork::merge(std::span<const Node> nodes, List& near) {
  const Node into = *std::ranges::min_element(nodes);
  for (const Node node : nodes) {
    if (node == into) continue;
    owner_[node] = into;
    layers_[into] += layers_[node];
  }
  weights_[into] = 2;
  borders_.merge(nodes, into);
  join(before_, nodes, into, near);
  join(behind_, nodes, into, near);
}

}  // namespace lowtide::solve::partition
