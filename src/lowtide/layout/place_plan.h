// Offsets for a plan: its buffers placed in one arena, as plan files have them.
#pragma once

#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/layout/place.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide::layout {

// All bytes count the resident ones, so that they compare with the peak and a budget. The arena has
// no place for these: the offsets begin at 0 above them.
struct PlanPlacement {
  std::vector<PlannedOffset> offsets;  // in the order in which buffers begin
  Bytes arena;
  Bytes load, bound;  // as Placement has them; the load is the peak, in rounded sizes
  Status status = Status::unknown;
  StopReason stopped_by = StopReason::finished;
};

// Of a plan that breaks no rule. The capacity is of the arena. Throws as `place` and `lifetimes`
// do.
PlanPlacement place_plan(const Graph& graph, const Plan& plan, const PlaceSettings& settings,
                         Limits& limits);

// The file with these offsets, their alignment and the claim of their arena.
void write_offsets(PlanFile& file, const PlanPlacement& placement, Bytes alignment);

}  // namespace lowtide::layout
