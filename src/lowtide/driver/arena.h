// Plans whose arena is within the budget: not only the bytes that are live, but offsets for them.
//
//   plan within a live budget  ->  place the plans that are as good  ->  the best that lies within
//           ^                                                                |
//           +---- the live budget less what the best plan lies over it ------+
//
// The most bytes live are never above the arena, so what is proven of plans within the budget is
// true of these plans as well. Arenas are not monotone in the budget: every plan is placed itself.
#pragma once

#include <optional>

#include "lowtide/driver/driver.h"
#include "lowtide/layout/place_plan.h"

namespace lowtide::driver {

// What PyTorch's allocators align tensors to.
inline constexpr Bytes kArenaAlignment = Bytes(512);

struct ArenaAnswer {
  Answer answer;  // its plan's arena is within the question's budget
  std::optional<layout::PlanPlacement> placement;  // of that plan
  // Where no plan lies within the budget: the smallest arena of those that were placed.
  std::optional<Bytes> smallest_arena;
};

// As solve(), with the budget as the limit of the arena, offsets in multiples of the alignment. The
// watcher sees plans whose live bytes are within the budget, before they are placed.
ArenaAnswer solve_arena(const solve::SolverTable& solvers, const Question& question,
                        const Request& request, Bytes alignment = kArenaAlignment);

}  // namespace lowtide::driver
