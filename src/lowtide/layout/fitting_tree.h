// A k-d tree of items by their first and last sections: finds the best-ranked one that lies within
// a range of sections. Private to the room.
//
//   all items: ranks from 0, first <= 9, last >= 1
//     by first, the lower half: ranks from 3, first <= 4, last >= 1
//       by last, the lower half: ...
//       by last, the upper half: ...
//     by first, the upper half: ranks from 0, first <= 9, last >= 6
//       ...
//
// A node knows bounds of what is below it, so a query for [2, 8) looks only into nodes that may
// hold an item with first >= 2 and last <= 8, and a better rank than the best found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lowtide/layout/sections.h"

namespace lowtide::layout {

class FittingTree {
 public:
  explicit FittingTree(std::span<const Item> items);  // which must outlive it

  // All items are there again, with these ranks, each another one.
  void reset(std::span<const std::int32_t> ranks);
  void remove(std::int32_t item);
  void put_back(std::int32_t item, std::int32_t rank);
  // The item of the smallest rank with first <= item.first and item.last <= last; none: -1. If
  // `section` is given, of those that are live there.
  std::int32_t best_within(std::int32_t first, std::int32_t last, std::int32_t section = -1);
  // Whether an item larger than `size` is live in one of these sections.
  bool has_larger(std::int32_t first, std::int32_t last, std::int64_t size);
  std::int32_t rank(std::int32_t item) const { return rank_[at(item)]; }
  // Nodes that queries have looked at.
  std::int64_t looks() const { return looks_; }

 private:
  static constexpr std::size_t kLeaf = 8;  // items of a leaf at most
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
  struct Node {
    std::int32_t lower = -1, upper = -1;  // nodes; a leaf has none
    std::int32_t parent;
    std::int32_t begin, end;                                // of ids_
    std::int32_t min_first, max_first, min_last, max_last;  // over its items
    // Of those that are there: the best rank, the largest size.
    std::int32_t best = kNone;
    std::int64_t largest = -1;
  };
  std::int32_t build(std::size_t begin, std::size_t end, bool by_last, std::int32_t parent);
  void see_leaf(Node& node) const;
  void see_halves(Node& node) const;
  bool has_larger(std::int32_t node, std::int32_t first, std::int32_t last, std::int64_t size);
  void set_rank(std::int32_t item, std::int32_t rank);
  void look(std::int32_t node);

  std::span<const Item> items_;
  std::vector<std::int32_t> ids_;          // items in the order of the leaves
  std::vector<Node> nodes_;                // parents before children
  std::vector<std::int32_t> leaf_, rank_;  // of each item; the rank of a removed one is kNone
  std::int64_t looks_ = 0;
  // Of the query.
  std::int32_t first_ = 0, last_ = 0, section_ = -1, best_rank_ = kNone, best_ = -1;
};

}  // namespace lowtide::layout
