// Problem: compute the bytes that cross the borders of very many small sets of nodes, which differ
// little from one to the next.
//
// Idea: keep the last set, with the number of ends of each value in it, and go to the next set by
// removing and adding nodes. A large node may have very many values, so it is not added: its border
// is known, and the values of other nodes are looked up among its values.
//
// Source: as gains are maintained in hypergraph partitioning, with values as nets (C. M. Fiduccia
// and R. M. Mattheyses, DAC 1982).
//
// Invariant: the number of ends of a value is the number of nodes with it in their lists, plus one
// if it leaves.
//
// Loses: if large nodes occur in many different sets, each of which is counted from their lists.
#include "lowtide/solve/hierarchy/partition/h_borders.h"

#include <algorithm>
#include <utility>

namespace lowtide::solve::partition {

namespace {

// A multiple of the mean number of values of a node, plus a constant.
std::size_t many_values(const LayerDag& dag) {
  return 32 + 8 * (dag.values.size() + dag.readers.size()) / std::max<std::size_t>(1, dag.size());
}

}  // namespace

Borders::Borders(const LayerDag& dag) : Borders(dag, many_values(dag)) {}

Borders::Borders(const LayerDag& dag, std::size_t large)
    : large_(large),
      values_of_(dag.size()),
      border_(dag.size()),
      index_(dag.size()),
      known_(dag.values.size()),
      asked_(dag.size()),
      in_(dag.size()) {
  for (std::uint32_t i = 0; i < dag.values.size(); ++i) {
    const LayerDag::Value& value = dag.values[i];
    const auto has_end = [&](Node node) {
      values_of_[node].push_back(i);
      border_[node] += value.bytes;
    };
    has_end(value.maker);
    for (const Node reader : dag.readers[i]) has_end(reader);
    const std::size_t ends = 1 + dag.readers[i].size() + (value.leaves ? 1 : 0);
    values_.push_back({value.bytes, static_cast<std::uint32_t>(ends)});
  }
  for (Node node = 0; node < dag.size(); ++node) index_if_large(node);
}

void Borders::index_if_large(Node node) {
  const List& list = values_of_[node];
  if (!is_large(node) && list.size() > large_)
    index_[node] = std::make_unique<Values>(list.begin(), list.end());
}

Bytes Borders::around(std::span<const Node> nodes) {
  List large, others;
  for (const Node node : nodes) (is_large(node) ? large : others).push_back(node);
  std::ranges::sort(large);
  if (large != current_large_) begin(large);
  asked_.clear();
  for (const Node node : others) asked_.add(node);
  const auto stay = std::ranges::count_if(current_, [&](Node node) { return asked_[node]; });
  if (large.empty() && 2 * static_cast<std::size_t>(stay) < current_.size()) begin(large);
  in_.clear();
  for (const Node node : std::exchange(current_, {})) {
    if (!asked_[node]) {
      remove(node);
      continue;
    }
    in_.add(node);
    current_.push_back(node);
  }
  for (const Node node : others) {
    if (!in_.add(node)) continue;
    add(node);
    current_.push_back(node);
  }
  return bytes_;
}

// Makes these large nodes the present ones.
void Borders::begin(const List& large) {
  bytes_ = around_large(large);
  current_large_ = large;
  current_.clear();
  known_.clear();
}

Bytes Borders::around_large(const List& large) {
  if (large.size() < 2) return large.empty() ? Bytes() : border_[large.front()];
  const auto [found, is_new] = together_.try_emplace(large);
  if (!is_new) return found->second;
  const Node longest =
      *std::ranges::max_element(large, {}, [&](Node n) { return values_of_[n].size(); });
  begin({longest});
  for (const Node node : large)
    if (node != longest) add(node);
  return found->second = bytes_;
}

Borders::Value& Borders::known(std::uint32_t i) {
  Value& value = values_[i];
  if (known_.add(i)) {
    value.inside = 0;
    for (const Node node : current_large_)
      if (index_[node]->contains(i)) ++value.inside;
  }
  return value;
}

void Borders::add(Node node) {
  for (const std::uint32_t i : values_of_[node]) {
    Value& value = known(i);
    if (value.crosses()) bytes_ -= value.bytes;
    ++value.inside;
    if (value.crosses()) bytes_ += value.bytes;
  }
}

void Borders::remove(Node node) {
  for (const std::uint32_t i : values_of_[node]) {
    Value& value = values_[i];
    if (value.crosses()) bytes_ -= value.bytes;
    --value.inside;
    if (value.crosses()) bytes_ += value.bytes;
  }
}

// The longest list absorbs the others, so that no item moves often.
void Borders::merge(std::span<const Node> nodes, Node into) {
  const Bytes bytes = around(nodes);
  const Node longest =
      *std::ranges::max_element(nodes, {}, [&](Node n) { return values_of_[n].size(); });
  List& list = values_of_[longest];
  known_.clear();
  if (!is_large(longest))
    for (const std::uint32_t value : list) known_.add(value);
  for (const Node node : nodes) {
    if (node == longest) continue;
    for (const std::uint32_t value : std::exchange(values_of_[node], {})) {
      if (is_large(longest) ? index_[longest]->insert(value).second : known_.add(value))
        list.push_back(value);
      else
        --values_[value].ends;
    }
    index_[node].reset();
  }
  std::swap(values_of_[into], list);
  std::swap(index_[into], index_[longest]);
  if (!is_large(into))
    std::erase_if(values_of_[into], [&](std::uint32_t value) { return values_[value].ends == 1; });
  index_if_large(into);
  border_[into] = bytes;
  together_.clear();
  begin({});
}

}  // namespace lowtide::solve::partition
