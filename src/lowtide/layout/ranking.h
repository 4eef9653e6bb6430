// Orders in which items are preferred, by a few properties each: what is long, large or stands
// where most is live is hard to place late. Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/layout/sections.h"

namespace lowtide::layout {

enum class Property : std::uint8_t {
  duration,  // in moments
  area,      // size times duration
  load,      // the most that is live during one of its sections
  size,
  sections,
};

// The largest first; of equal ones the next property decides, then the index.
using Rule = std::array<Property, 3>;
inline constexpr std::array<Rule, 6> kRules = {{
    {Property::load, Property::area, Property::duration},
    {Property::duration, Property::area, Property::load},
    {Property::area, Property::duration, Property::load},
    {Property::load, Property::duration, Property::area},
    {Property::size, Property::duration, Property::area},
    {Property::sections, Property::area, Property::load},
}};

// Positions in the order of their keys, smallest first; of equal ones the index decides.
std::vector<std::int32_t> ranks_by(std::span<const double> keys);

// The rank of each item by the rule. `loads` has the load over each item. All properties of an item
// but its load are multiplied by its `factors`, if there are any.
std::vector<std::int32_t> ranks_by(const Rule& rule, std::span<const Item> items,
                                   std::span<const std::int64_t> loads,
                                   std::span<const double> factors = {});

}  // namespace lowtide::layout
