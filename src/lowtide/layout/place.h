// Where buffers lie in one arena: dynamic storage allocation. Two buffers that are live at the same
// moment must not overlap, and the height of the whole is to be as small as possible.
//
// The most bytes that are live at once, the load, is a lower bound, and on the steps of real
// networks it is nearly always reached. What is done, until the height is the load or a limit
// comes:
//
//   sections   moments at which a maximal set of buffers is live            sections.h
//   parts      stretches that no buffer crosses the border of; what is
//              live throughout one lies at its bottom                       parts.h
//   dives      lowest valley first, by six orders; then with a look ahead
//              at what an item would doom                                   skyline.h, ranking.h
//   then, for the highest part in turn, with slices of work that grow:
//   squeaky    what ended too high moves forward in the order               squeaky_wheel.h
//   exact      a search at one capacity, for parts that are small           canonical_search.h
//
// docs/why/offsets.md has measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/base/units.h"
#include "lowtide/layout/buffer.h"
#include "lowtide/plan/outcome.h"

namespace lowtide::layout {

struct PlaceSettings {
  Bytes alignment = Bytes(1);  // offsets are multiples, sizes are rounded up
  // Enough: what is found within it is returned at once. Absent: as low as possible.
  std::optional<Bytes> capacity = std::nullopt;
  std::uint64_t seed = 0;
};

struct Placement {
  std::vector<Bytes> offsets;  // of each buffer; always there, whatever the status
  Bytes height;                // the highest end
  Bytes load;                  // the most bytes live at once, in rounded sizes
  Bytes bound;                 // no placement is lower; at least the load
  // optimal: the height is the bound. feasible: within the capacity, or there is none. infeasible:
  // the bound is above the capacity. unknown: neither is known.
  Status status = Status::unknown;
  StopReason stopped_by = StopReason::finished;
};

// Deterministic for the same seed and limit of work; a unit of work is an item placed. Where
// nothing is left to do, it ends before the limit. InputError for an alignment below 1 (place:
// "alignment"), and as make_sections says for buffers that are none, and for a sum of all sizes of
// 2^63 or more.
Placement place(std::span<const Buffer> buffers, const PlaceSettings& settings, Limits& limits);

}  // namespace lowtide::layout
