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
  node.max_first = node.max_last = 0;
  node.min_first = node.min_last = kNone;
  for (std::size_t k = begin; k < end; ++k) {
    const Item& item = items_[at(ids_[k])];
    node.min_first = std::min(node.min_first, item.first);
    node.max_first = std::max(node.max_first, item.first);
    node.min_last = std::min(node.min_last, item.last);
    node.max_last = std::max(node.max_last, item.last);
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

void FittingTree::see_leaf(Node& node) const {
  node.best = kNone;
  node.largest = -1;
  for (std::int32_t k = node.begin; k < node.end; ++k) {
    const std::int32_t item = ids_[at(k)];
    if (rank_[at(item)] == kNone) continue;
    node.best = std::min(node.best, rank_[at(item)]);
    node.largest = std::max(node.largest, items_[at(item)].size);
  }
}

void FittingTree::see_halves(Node& node) const {
  const Node &lower = nodes_[at(node.lower)], &upper = nodes_[at(node.upper)];
  node.best = std::min(lower.best, upper.best);
  node.largest = std::max(lower.largest, upper.largest);
}

void FittingTree::reset(std::span<const std::int32_t> ranks) {
  rank_.assign(ranks.begin(), ranks.end());
  for (std::size_t k = nodes_.size(); k-- > 0;) {
    Node& node = nodes_[k];
    node.lower < 0 ? see_leaf(node) : see_halves(node);
  }
}

void FittingTree::remove(std::int32_t item) { set_rank(item, kNone); }
void FittingTree::put_back(std::int32_t item, std::int32_t rank) { set_rank(item, rank); }

void FittingTree::set_rank(std::int32_t item, std::int32_t rank) {
  rank_[at(item)] = rank;
  std::int32_t index = leaf_[at(item)];
  see_leaf(nodes_[at(index)]);
  while ((index = nodes_[at(index)].parent) >= 0) {
    Node& node = nodes_[at(index)];
    const std::int32_t best = node.best;
    const std::int64_t largest = node.largest;
    see_halves(node);
    if (best == node.best && largest == node.largest) return;
  }
}

std::int32_t FittingTree::best_within(std::int32_t first, std::int32_t last, std::int32_t section) {
  first_ = first;
  last_ = last;
  section_ = section;
  best_rank_ = kNone;
  best_ = -1;
  if (!nodes_.empty()) look(0);
  return best_;
}

bool FittingTree::has_larger(std::int32_t first, std::int32_t last, std::int64_t size) {
  return !nodes_.empty() && has_larger(0, first, last, size);
}

bool FittingTree::has_larger(std::int32_t index, std::int32_t first, std::int32_t last,
                             std::int64_t size) {
  const Node& node = nodes_[at(index)];
  ++looks_;
  if (node.largest <= size || node.min_first >= last || node.max_last <= first) return false;
  if (node.lower >= 0)
    return has_larger(node.lower, first, last, size) || has_larger(node.upper, first, last, size);
  for (std::int32_t k = node.begin; k < node.end; ++k) {
    const std::int32_t id = ids_[at(k)];
    const Item& item = items_[at(id)];
    if (rank_[at(id)] != kNone && item.size > size && item.first < last && item.last > first)
      return true;
  }
  return false;
}

void FittingTree::look(std::int32_t index) {
  const Node& node = nodes_[at(index)];
  ++looks_;
  if (node.best >= best_rank_ || node.max_first < first_ || node.min_last > last_) return;
  if (section_ >= 0 && (node.min_first > section_ || node.max_last <= section_)) return;
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
    if (section_ >= 0 && (items_[at(item)].first > section_ || items_[at(item)].last <= section_))
      continue;
    best_rank_ = rank_[at(item)];
    best_ = item;
  }
}

}  // namespace lowtide::layout
