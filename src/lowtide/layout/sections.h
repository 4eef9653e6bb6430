// Buffers over sections instead of moments: the moments at which as many buffers as possible are
// live, which are all that matter to where they may lie. Private to the room.
//
//   moments   0 1 2 3 4 5          sections  0 1
//   a         [---)                          [-)        b and c are live with a, d with c:
//   b         [-----)                        [-)        no other moment has more
//   c             [-------)                  [---)
//   d                 [---)                    [-)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/layout/buffer.h"

namespace lowtide::layout {

// Indices are 32-bit to be compact.
inline std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

struct Item {
  std::int32_t first = 0, last = 0;  // sections first, ..., last - 1; at least one
  std::int64_t size = 0;
  double duration = 0;  // in moments
};

struct Sections {
  std::vector<Item> items;  // one for each buffer
  std::int32_t count = 0;
};

// Sizes are rounded up to `alignment`. InputError (place: "buffers/i") for a buffer that is live at
// no moment or has negative bytes, and where all sizes add up to 2^63 or more.
Sections make_sections(std::span<const Buffer> buffers, std::int64_t alignment);

// The sizes of the items of each section, and their largest sum over the sections of each item.
std::vector<std::int64_t> loads(std::span<const Item> items, std::int32_t sections);
std::vector<std::int64_t> load_over(std::span<const Item> items,
                                    std::span<const std::int64_t> loads);

}  // namespace lowtide::layout
