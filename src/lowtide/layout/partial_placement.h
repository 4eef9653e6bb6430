// Some items placed, the others open: what searches from the bottom up look ahead with. Private to
// the room.
//
// An open item can begin at `lowest` at best: above all placed items that it meets. Where every
// open item of a section begins higher than what is placed there, the bytes between are lost, so
// each section has a floor: the end of the highest placed item, or the least `lowest` of its open
// items, whichever is higher. A section whose floor and whose open items together are above the
// capacity cannot be completed.
//
//   capacity ------------------------
//     |   | open items: `left`        |     One open item whose `lowest` is at most the floor is
//     the |   |                           |     section's witness: while it is open and stays so
//     low,
//   floor +---------------------------+     nothing is to be done for the section.
//     |   |###### lost ######         |
//     |   +--------+  placed  +-------+
//     +------- sections ---------------
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/layout/sections.h"

namespace lowtide::layout {

class PartialPlacement {
 public:
  // The sections of all items: so much memory it takes, beside one entry for each pair that meets.
  static std::int64_t live_of(std::span<const Item> items);

  PartialPlacement(std::span<const Item> items, std::int32_t sections);  // items must outlive it

  // All items are open. False if they do not fit under the capacity together.
  bool begin(std::int64_t capacity);

  // Places the open item at its lowest offset. False if then a section cannot be completed: what
  // has changed stays so until the item is taken back, by the mark from before.
  bool place(std::int32_t item);
  void take_back(std::int32_t item, std::size_t mark);
  std::size_t mark() const { return trail_.size(); }

  std::int64_t lowest(std::int32_t item) const { return lowest_[at(item)]; }
  bool is_placed(std::int32_t item) const { return placed_[at(item)] != 0; }
  bool meets_open(std::int32_t item) const;  // an open one besides itself
  std::int64_t left(std::int32_t section) const { return left_[at(section)]; }
  std::int64_t most_left(const Item& item) const;  // over its sections

  // Units of work since it was asked last: a few hundred looks at items and sections are one. Those
  // of whoever searches count too.
  void look(std::int64_t count) { looks_ += count; }
  std::int64_t take_work() {
    const std::int64_t units = looks_ / kLooksPerUnit;
    looks_ %= kLooksPerUnit;
    return units;
  }

 private:
  static constexpr std::int64_t kLooksPerUnit = 512;
  struct Change {
    std::int64_t* value;
    std::int64_t before;
  };
  void set(std::int64_t& value, std::int64_t to);
  void close(std::int32_t item, std::int32_t section);
  void swap_in(std::int32_t section, std::size_t a, std::size_t b);
  bool raise_floors(std::int32_t first, std::int32_t last);
  bool find_witness(std::int32_t section);

  std::span<const Item> items_;
  std::vector<std::vector<std::int32_t>> neighbours_;
  // The items of each section, open ones first; where each item stands in the list of each of its
  // sections; and how many are open. An item that is taken back is open again where it stands.
  std::vector<std::vector<std::int32_t>> of_section_, place_in_;
  std::vector<std::size_t> open_;
  std::int64_t capacity_ = 0, looks_ = 0;
  std::vector<std::uint8_t> placed_;
  std::vector<std::int64_t> lowest_;                  // of each item
  std::vector<std::int64_t> floor_, left_, witness_;  // of each section; no witness: -1
  std::vector<Change> trail_;
};

}  // namespace lowtide::layout
