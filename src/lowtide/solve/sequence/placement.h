// Places transfers by a rule: when offloaded tensors are freed and fetched back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve {

// Why the times of a problem are too long for clocks that are doubles, copies of all tensors
// included; empty if they are not. Then those of its plans keep clear of 63 bits too.
std::string too_long(const Problem& problem);

struct Placement {
  std::vector<Event> events;
  bool within = false;  // the budget; if not, no placement of these transfers keeps it
};

// The same computations with the same tensors away between the same uses, each freed when its copy
// out has ended, or earlier, first the one whose copy ends first, where the budget demands it; and
// fetched in order of need, as late as the lane allows, but not before its bytes fit until it is
// needed. A tensor that would be away for no time stays. The holds and the places of the fetches
// given do not count; computations and fetches that nothing needs are left out.
//
// The problem must have a machine if an event fetches, and times that are not too long. Near-linear
// in the links of the events. Limits are charged a unit for each event and link; none, if they stop
// it.
std::optional<Placement> place(const Problem& problem, std::span<const Event> events,
                               Limits& limits);
// The same without limits.
Placement place(const Problem& problem, std::span<const Event> events);

}  // namespace lowtide::solve
