#include "lowtide/layout/fitting_tree.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lowtide::layout {

FittingTree::FittingTree(std::span<const Item> items)
    : items_(items), ids_(items.size()), leaf_(items.size()), rank_(items.size(), kNone) {
  std::iota(ids_.begin(), ids_.end(), 0);
  if (!items.empty()) build(0, items.size(), false, -1);
}

std::int32_t FittingTree::build(std::size_t begin, std::size_t end, bool by_last,
                                std::int32_t parent) {
  const auto index = static_cast<std::int32_t>(nodes_.size());
  Node node;
  node.parent = parent;
  node.begin = static_cast<std::int32_t>(begin);
  node.end = static_cast<std::int32_t>(end);
  node.max_first = 0;
  node.min_last = kNone;
  for (std::size_t k = begin; k < end; ++k) {
    node.max_first = std::max(node.max_first, items_[at(ids_[k])].first);
    node.min_last = std::min(node.min_last, items_[at(ids_[k])].last);
  }
  nodes_.push_back(node);
  if (end - begin <= kLeaf) {
    for (std::size_t k = begin; k < end; ++k) leaf_[at(ids_[k])] = index;
    return index;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  const auto place = [&](std::size_t k) { return ids_.begin() + static_cast<std::ptrdiff_t>(k); };
  std::nth_element(place(begin), place(middle), place(end), [&](std::int32_t a, std::int32_t b) {
    const std::int32_t left = by_last ? items_[at(a)].last : items_[at(a)].first;
    const std::int32_t right = by_last ? items_[at(b)].last : items_[at(b)].first;
    return left != right ? left < right : a < b;
  });
  const std::int32_t lower = build(begin, middle, !by_last, index);
  const std::int32_t upper = build(middle, end, !by_last, index);
  nodes_[at(index)].lower = lower;
  nodes_[at(index)].upper = upper;
  return index;
}

std::int32_t FittingTree::best_of_leaf(const Node& node) const {
  std::int32_t best = kNone;
  for (std::int32_t k = node.begin; k < node.end; ++k)
    best = std::min(best, rank_[at(ids_[at(k)])]);
  return best;
}

void FittingTree::reset(std::span<const std::int32_t> ranks) {
  rank_.assign(ranks.begin(), ranks.end());
  for (std::size_t k = nodes_.size(); k-- > 0;) {
    Node& node = nodes_[k];
    node.best = node.lower < 0 ? best_of_leaf(node)
                               : std::min(nodes_[at(node.lower)].best, nodes_[at(node.upper)].best);
  }
}

void FittingTree::remove(std::int32_t item) {
  rank_[at(item)] = kNone;
  std::int32_t index = leaf_[at(item)];
  nodes_[at(index)].best = best_of_leaf(nodes_[at(index)]);
  while ((index = nodes_[at(index)].parent) >= 0) {
    Node& node = nodes_[at(index)];
    const std::int32_t best = std::min(nodes_[at(node.lower)].best, nodes_[at(node.upper)].best);
    if (best == node.best) return;
    node.best = best;
  }
}

std::int32_t FittingTree::best_within(std::int32_t first, std::int32_t last) {
  first_ = first;
  last_ = last;
  best_rank_ = kNone;
  best_ = -1;
  if (!nodes_.empty()) look(0);
  return best_;
}

void FittingTree::look(std::int32_t index) {
  const Node& node = nodes_[at(index)];
  ++looks_;
  if (node.best >= best_rank_ || node.max_first < first_ || node.min_last > last_) return;
  if (node.lower >= 0) {
    std::int32_t one = node.lower, other = node.upper;
    if (nodes_[at(other)].best < nodes_[at(one)].best) std::swap(one, other);
    look(one);
    look(other);
    return;
  }
  for (std::int32_t k = node.begin; k < node.end; ++k) {
    const std::int32_t item = ids_[at(k)];
    if (rank_[at(item)] >= best_rank_) continue;
    if (items_[at(item)].first < first_ || items_[at(item)].last > last_) continue;
    best_rank_ = rank_[at(item)];
    best_ = item;
  }
}

}  // namespace lowtide::layout
