// A place in the array in which the sequence of the search lies. Slots are places in an order: one
// may ask which of two comes first and how far they are apart, but a slot is no count and no item.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lowtide/base/ids.h"

namespace lowtide::solve::local {

using Distance = std::int32_t;  // between two slots

class Slot : public Id<struct SlotTag> {
 public:
  using Id::Id;

  // The slot in front of the first is not valid: it is where a search for the next item begins.
  constexpr Slot operator+(Distance d) const { return Slot(index() + static_cast<std::size_t>(d)); }
  constexpr Slot operator-(Distance d) const { return Slot(index() - static_cast<std::size_t>(d)); }
  constexpr Distance operator-(Slot other) const {
    return static_cast<Distance>(index() - other.index());
  }
};

}  // namespace lowtide::solve::local
