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
  // The item of the smallest rank with first <= item.first and item.last <= last; none: -1.
  std::int32_t best_within(std::int32_t first, std::int32_t last);
  // Nodes that queries have looked at.
  std::int64_t looks() const { return looks_; }

 private:
  static constexpr std::size_t kLeaf = 8;  // items of a leaf at most
  static constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
  struct Node {
    std::int32_t lower = -1, upper = -1;  // nodes; a leaf has none
    std::int32_t parent;
    std::int32_t begin, end;           // of ids_
    std::int32_t max_first, min_last;  // over its items
    std::int32_t best = kNone;         // rank of those that are there
  };
  std::int32_t build(std::size_t begin, std::size_t end, bool by_last, std::int32_t parent);
  std::int32_t best_of_leaf(const Node& node) const;
  void look(std::int32_t node);

  std::span<const Item> items_;
  std::vector<std::int32_t> ids_;          // items in the order of the leaves
  std::vector<Node> nodes_;                // parents before children
  std::vector<std::int32_t> leaf_, rank_;  // of each item; the rank of a removed one is kNone
  std::int64_t looks_ = 0;
  std::int32_t first_ = 0, last_ = 0, best_rank_ = kNone, best_ = -1;  // of the query
};

}  // namespace lowtide::layout
