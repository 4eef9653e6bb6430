// A list in which two items are compared in constant time, and items can be inserted anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lowtide::solve::greedy {

class OrderList {
 public:
  using Item = std::int32_t;
  static constexpr Item kNone = -1;

  // Items 0, 1, ... in this order; at least one. Each further item gets the next number.
  explicit OrderList(std::size_t items);

  // Inserts a new item right before `at`. Amortised logarithmic.
  Item insert_before(Item at);

  bool before(Item a, Item b) const { return label(a) < label(b); }
  Item first() const { return first_; }
  Item next(Item at) const { return nodes_[static_cast<std::size_t>(at)].next; }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    std::uint64_t label;
    Item previous, next;
  };
  std::uint64_t label(Item at) const { return nodes_[static_cast<std::size_t>(at)].label; }
  Node& node(Item at) { return nodes_[static_cast<std::size_t>(at)]; }
  void spread(Item at);

  std::vector<Node> nodes_;
  Item first_ = 0;
};

}  // namespace lowtide::solve::greedy
