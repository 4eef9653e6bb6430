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

// Why the times of a problem, copies of all tensors included, are too long for doubles; empty if
// they are not. Then the times of its plans stay below 2^63 too.
std::string too_long(const Problem& problem);

struct Placement {
  std::vector<Event> events;
  bool within = false;  // the budget is kept; if not, no placement of these transfers keeps it
};

// The same computations, with the same tensors offloaded between the same uses. Each tensor is
// freed when its copy to the host has ended, or earlier if the budget requires it, the tensor whose
// copy ends first coming first. It is fetched in order of need, as late as the lane allows, and
// once its bytes fit until its use. A tensor that would be freed and fetched at the same position
// stays. Given holds and positions of fetches are ignored; computations and fetches that no later
// op needs are omitted.
//
// The problem must have a machine if an event fetches, and times that are not too long. Near-linear
// in the links of the events. Limits are charged a unit for each event and link; nullopt if they
// stop it.
std::optional<Placement> place(const Problem& problem, std::span<const Event> events,
                               Limits& limits);
// The same without limits.
Placement place(const Problem& problem, std::span<const Event> events);

}  // namespace lowtide::solve
