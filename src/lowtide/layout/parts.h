// Items in parts that do not meet: each can be placed by itself. Private to the room.
//
//   offset  |                     what is live throughout a stretch of sections may lie at its
//           |  2 |     3          bottom without loss: a, then b over the left half. No item
//           |----| ----           crosses the border in the middle, so three parts are left, of
//           |  b |    1           which 1 begins above a, 2 above a and b.
//           |---------------
//           |       a
//           +--------------- sections
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/layout/sections.h"

namespace lowtide::layout {

struct Part {
  std::vector<std::int32_t> ids;  // of all items, in their order
  std::vector<Item> items;        // the same with sections counted from the part's first
  std::int32_t sections = 0;
  std::int64_t base = 0;  // the offset above which they lie
};

// Writes the offsets of what lies at the bottom of others into `offsets`. What has no size is in no
// part.
std::vector<Part> split_into_parts(const Sections& sections, std::vector<std::int64_t>& offsets);

}  // namespace lowtide::layout
