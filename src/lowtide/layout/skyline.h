// The dive: items are placed from the bottom up, each as low as it can lie. Of all items that can
// begin at the lowest offset, the one that ranks first is placed there. Private to the room.
//
//   offset                      The skyline is a list of segments. The lowest one, v, is filled
//   next:
//     |   +-----+               with the best-ranked item whose sections all lie within v. If there
//     |   |     |     +----     is none, nothing will ever lie in v at this offset, and v rises to
//     |   |     +-----+         the lower one of its neighbours and joins it.
//     |   |        v
//     +---------------------  sections
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/layout/fitting_tree.h"
#include "lowtide/layout/range_max_tree.h"
#include "lowtide/layout/sections.h"

namespace lowtide::layout {

class Skyline {
 public:
  Skyline(std::span<const Item> items, std::int32_t sections);  // items must outlive it

  // Places all items by these ranks, smallest first, and returns the height. Gives up as soon as
  // something would end above `most`, or at a limit, and returns kGaveUp.
  std::int64_t dive(std::span<const std::int32_t> ranks, std::int64_t most, Limits& limits);
  static constexpr std::int64_t kGaveUp = INT64_MAX;
  // The same within a capacity, with a look ahead (skyline_ahead.cpp): the best-ranked item is
  // placed after which every section can still be completed. If there is none, the valley rises.
  // Gives up as soon as a section cannot be completed. `loads`: of the sections, by all items.
  std::int64_t dive_within(std::span<const std::int32_t> ranks, std::int64_t capacity,
                           std::span<const std::int64_t> loads, Limits& limits);
  // Of the latest dive that did not give up.
  const std::vector<std::int64_t>& offsets() const { return offsets_; }

 private:
  // By its first section. `previous` and `last` (the next segment's first section) link them.
  struct Segment {
    std::int32_t previous, last;
    std::int64_t height = -1;  // no segment begins here
  };
  struct Valley {
    std::int64_t height;
    std::int32_t first;
    auto operator<=>(const Valley&) const = default;
  };
  // A stretch between what is higher on both sides. What no item within it fills rises to `rim`,
  // since whatever else is live there lies on one of the sides.
  struct Gap {
    std::int32_t first, last;
    std::int64_t rim;
  };
  Segment& segment(std::int32_t first) { return segments_[at(first)]; }
  std::int32_t lowest();  // its first section
  void set(std::int32_t first, std::int32_t last, std::int32_t previous, std::int64_t height);
  std::int64_t raise(std::int32_t first);  // to which height
  void begin(std::span<const std::int32_t> ranks);
  std::int32_t best_ahead(std::int32_t valley, std::int64_t capacity, Limits& limits);
  bool dooms(const Item& item, std::int32_t valley, std::int64_t capacity);
  bool loses_beside(const Item& item, std::int32_t valley, bool behind, std::int64_t capacity);
  bool loses(const Gap& gap, std::int32_t first, std::int32_t last, std::int64_t capacity,
             int depth);
  void put(const Item& item, std::int32_t valley);

  std::span<const Item> items_;
  std::int32_t sections_;
  FittingTree tree_;
  RangeMaxTree left_;  // with a look ahead: the bytes of each section that are still to be placed
  std::vector<Segment> segments_;
  std::vector<Valley> heap_;  // some of them outdated
  std::vector<std::int64_t> offsets_;
};

}  // namespace lowtide::layout
