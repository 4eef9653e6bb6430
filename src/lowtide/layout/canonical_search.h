// An exact search for a placement within a capacity: depth first, over the items in the order of
// their offsets. Private to the room.
//
// Every placement can be made canonical: take the items by their offsets (equal ones by rank) and
// let each fall as low as those before it let it. So the search places one item after the other,
// each at the lowest offset that those placed leave it, never below the one before it. What ends
// the branch of an item at an offset:
//
// - another item could lie wholly below that offset: it comes first;
// - a section cannot be completed (partial_placement.h), or not by items that all begin at that
//   offset or above.
//
// When no open item crosses the border between two sections any more, the sides are searched apart.
// Sources: M. Moffitt, MiniMalloc, ASPLOS 2023, for the order, sections, dominance and splitting.
// Here searches that take long start again with another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/base/random.h"
#include "lowtide/layout/partial_placement.h"
#include "lowtide/layout/ranking.h"
#include "lowtide/layout/sections.h"

namespace lowtide::layout {

class CanonicalSearch {
 public:
  static constexpr std::size_t kMostItems = 4000;  // it recurses as deep

  // `placement` is of these items; both must outlive the search.
  CanonicalSearch(std::span<const Item> items, std::int32_t sections, PartialPlacement& placement,
                  std::uint64_t seed);

  enum class Answer : std::uint8_t { found, none, stopped };
  // Whether all items can lie within the capacity. Orders are tried in turn, with noise and with
  // limits of nodes that differ from round to round, until one of them decides or a limit comes.
  Answer run(std::int64_t capacity, Limits& limits);
  const std::vector<std::int64_t>& offsets() const { return offsets_; }  // if found

 private:
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
  bool fits_above(std::int64_t offset, std::int32_t first, std::int32_t last) const;
  void rank(const std::vector<std::int32_t>& open);

  std::span<const Item> items_;
  std::int32_t sections_;
  PartialPlacement& placement_;
  Random random_;
  std::int64_t capacity_ = 0, nodes_left_ = 0;
  Limits* limits_ = nullptr;
  std::int64_t tries_ = 0;
  const Rule* rule_ = nullptr;
  std::vector<double> factors_;         // of the properties of items: noise
  std::vector<std::int32_t> ranks_;     // among the items of the same part
  std::vector<std::int32_t> crossing_;  // open items over the border behind each section
  std::vector<std::int64_t> offsets_;
};

}  // namespace lowtide::layout
