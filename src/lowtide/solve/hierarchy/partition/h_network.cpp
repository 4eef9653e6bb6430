// Names are kept in a forest of the nodes that they became part of; lists of links are put in order
// when somebody next asks for them.
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

void append(std::vector<Node>& list, std::vector<Node>& other) {
  list.insert(list.end(), other.begin(), other.end());
  other = {};
}

}  // namespace

HNetwork::HNetwork(const Layers& layers)
    : dag_(layers.dag),
      before_(lists_of(dag_.before)),
      behind_(lists_of(dag_.behind)),
      made_(lists_of(dag_.made)),
      read_(lists_of(dag_.read)),
      readers_(lists_of(dag_.readers)),
      resolved_(dag_.size(), 0),
      among_(dag_.size()),
      seen_(dag_.values.size()) {
  for (Node node = 0; node < dag_.size(); ++node) {
    owner_.push_back(node);
    weights_.push_back(layers.ops[node].size());
    layers_.push_back(layers.ops[node].size());
  }
}

Node HNetwork::node_of(Node name) const {
  while (owner_[name] != name) name = owner_[name] = owner_[owner_[name]];
  return name;
}

void HNetwork::resolve(List& list, Node without) {
  for (Node& name : list) name = node_of(name);
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  std::erase(list, without);
}

std::span<const Node> HNetwork::before(Node node) {
  if (std::exchange(resolved_[node], merges_) != merges_) resolve(before_[node], node);
  return before_[node];
}

// Every step takes an item from the list or ends.
Node HNetwork::only_behind(Node node) {
  List& list = behind_[node];
  while (!list.empty()) {
    const Node last = list.back() = node_of(list.back());
    if (last != node && list.size() == 1) return last;
    if (last == node) {
      list.pop_back();
      continue;
    }
    Node& other = list[list.size() - 2];
    other = node_of(other);
    if (other != node && other != last) return node;
    other = last;
    list.pop_back();
  }
  return node;
}

Bytes HNetwork::interface(std::span<const Node> nodes) {
  among_.clear();
  seen_.clear();
  for (const Node node : nodes) among_.add(node);
  Bytes bytes;
  for (const Node node : nodes) {
    for (const std::uint32_t value : read_[node])
      if (!among_[node_of(dag_.values[value].maker)] && seen_.add(value))
        bytes += dag_.values[value].bytes;
    for (const std::uint32_t value : made_[node])
      if (leaves(value)) bytes += dag_.values[value].bytes;
  }
  return bytes;
}

// Whether something outside of the marked nodes reads it. What did the last time is asked first; if
// nothing does, the list becomes as short as the nodes are few.
bool HNetwork::leaves(std::uint32_t value) {
  if (dag_.values[value].leaves) return true;
  List& readers = readers_[value];
  if (!readers.empty() && !among_[node_of(readers.front())]) return true;
  for (std::size_t i = readers.size(); i-- > 1;) {
    if (among_[node_of(readers[i])]) continue;
    std::swap(readers[i], readers.front());
    return true;
  }
  resolve(readers, node_of(dag_.values[value].maker));
  return false;
}

// The longest list takes in the others, so that no item moves often.
void HNetwork::join(std::vector<List>& lists, std::span<const Node> nodes, Node into, List& near) {
  const Node longest =
      *std::ranges::max_element(nodes, {}, [&](Node n) { return lists[n].size(); });
  std::swap(lists[into], lists[longest]);
  for (const Node node : nodes) {
    if (node == into) continue;
    near.insert(near.end(), lists[node].begin(), lists[node].end());
    append(lists[into], lists[node]);
  }
}

void HNetwork::merge(std::span<const Node> nodes, List& near) {
  const Node into = *std::ranges::min_element(nodes);
  for (const Node node : nodes) {
    if (node == into) continue;
    owner_[node] = into;
    layers_[into] += layers_[node];
    append(made_[into], made_[node]);
    append(read_[into], read_[node]);
  }
  weights_[into] = 2;
  ++merges_;
  join(before_, nodes, into, near);
  join(behind_, nodes, into, near);
  List& read = read_[into];
  std::ranges::sort(read);
  read.erase(std::unique(read.begin(), read.end()), read.end());
  std::erase_if(read, [&](std::uint32_t v) { return node_of(dag_.values[v].maker) == into; });
  std::erase_if(made_[into], [&](std::uint32_t value) {
    List& readers = readers_[value];
    while (!readers.empty() && node_of(readers.back()) == into) readers.pop_back();
    return readers.empty() && !dag_.values[value].leaves;
  });
}

}  // namespace lowtide::solve::partition
