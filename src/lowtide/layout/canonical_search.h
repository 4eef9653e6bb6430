// An exact search for a placement within a capacity: depth first, over the items in the order of
// their offsets. Private to the room.
//
// Every placement can be made canonical: take the items by their offsets (equal ones by rank) and
// let each fall as low as those before it let it. So the search places one item after the other,
// each at the lowest offset that those placed leave it (`lowest_`), never below the one before it.
//
//   capacity ------------------------        What ends the branch of an item i at offset o:
//     |   | left_ of the section      |      - another item could lie wholly below o: i comes later
//     |   |                           |      - a section's floor, and what is still to be placed in
//   floor_|###########  i             |        it, do not fit under the capacity. No item of the
//     |   +-------+-------------------+        section can begin below its floor, which rises to
//     +------- sections ---------------        the lowest `lowest_` of its items
//
// When no open item crosses the border between two sections any more, the sides are searched apart.
// Sources: M. Moffitt, MiniMalloc, ASPLOS 2023, for the order, sections, dominance and splitting.
// Here state is undone from a trail, a section keeps one item as witness of its floor, and searches
// that take long start again with another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/base/random.h"
#include "lowtide/layout/ranking.h"
#include "lowtide/layout/sections.h"

namespace lowtide::layout {

class CanonicalSearch {
 public:
  // Whether it is worth building for these items: they are few, and few meet each other.
  static bool suits(std::span<const Item> items, std::int32_t sections);

  CanonicalSearch(std::span<const Item> items, std::int32_t sections, std::uint64_t seed);

  enum class Answer : std::uint8_t { found, none, stopped };
  // Whether all items can lie within the capacity. Orders are tried in turn, with noise and with
  // limits of nodes that differ from round to round, until one of them decides or a limit comes.
  Answer run(std::int64_t capacity, Limits& limits);
  const std::vector<std::int64_t>& offsets() const { return offsets_; }  // if found

 private:
  struct Change {
    std::int64_t* value;
    std::int64_t before;
  };
  struct Candidate {
    std::int64_t offset;
    std::int32_t rank, item;
    auto operator<=>(const Candidate&) const = default;
  };
  Answer search_all();
  Answer search(const std::vector<std::int32_t>& open, std::int32_t first, std::int32_t last,
                std::int64_t least, std::int32_t least_rank);
  Answer search_rest(const std::vector<std::int32_t>& open, std::int32_t first, std::int32_t last,
                     std::int32_t placed, std::int64_t offset);
  Answer search_apart(const std::vector<std::int32_t>& open,
                      const std::vector<std::int32_t>& borders);
  std::vector<Candidate> candidates(const std::vector<std::int32_t>& open, std::int64_t least,
                                    std::int32_t least_rank) const;
  bool place(std::int32_t item);
  void take_back(std::int32_t item, std::size_t mark);
  void close(std::int32_t item, std::int32_t section);
  void swap_in(std::int32_t section, std::size_t a, std::size_t b);
  bool raise_floors(std::int32_t first, std::int32_t last);
  bool fits_above(std::int64_t offset, std::int32_t first, std::int32_t last) const;
  void rank(const std::vector<std::int32_t>& open);
  void set(std::int64_t& value, std::int64_t to);

  std::span<const Item> items_;
  std::int32_t sections_;
  Random random_;
  std::vector<std::vector<std::int32_t>> neighbours_;
  // The items of each section, open ones first; where each item stands in the list of each of its
  // sections; and how many are open. An item that is taken back is open again where it stands.
  std::vector<std::vector<std::int32_t>> of_section_, place_in_;
  std::vector<std::size_t> open_;
  std::int64_t capacity_ = 0, nodes_left_ = 0;
  std::int64_t looked_ = 0;  // at items and sections, since work was spent for it
  Limits* limits_ = nullptr;
  std::int64_t tries_ = 0;
  const Rule* rule_ = nullptr;
  std::vector<double> factors_;      // of the properties of items: noise
  std::vector<std::int32_t> ranks_;  // among the items of the same part
  std::vector<std::uint8_t> placed_;
  std::vector<std::int64_t> lowest_;                  // of each item
  std::vector<std::int64_t> floor_, left_, witness_;  // of each section; no witness: -1
  std::vector<std::int32_t> crossing_;  // open items over the border behind each section
  std::vector<Change> trail_;
  std::vector<std::int64_t> offsets_;
};

}  // namespace lowtide::layout
