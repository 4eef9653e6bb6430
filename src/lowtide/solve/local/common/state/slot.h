// A position in the array that stores the sequence of the search. Slots are ordered: they can be
// compared and subtracted, but a slot is neither a count nor an item.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lowtide/base/ids.h"

namespace lowtide::solve::local {

using Distance = std::int32_t;  // between two slots

class Slot : public Id<struct SlotTag> {
 public:
  using Id::Id;

  // The slot before the first is invalid: a search for the next item begins there.
  constexpr Slot operator+(Distance d) const { return Slot(index() + static_cast<std::size_t>(d)); }
  constexpr Slot operator-(Distance d) const { return Slot(index() - static_cast<std::size_t>(d)); }
  constexpr Distance operator-(Slot other) const {
    return static_cast<Distance>(index() - other.index());
  }
};

}  // namespace lowtide::solve::local
