#include "lowtide/layout/place_plan.h"

#include "lowtide/layout/lifetimes.h"

namespace lowtide::layout {

PlanPlacement place_plan(const Graph& graph, const Plan& plan, const PlaceSettings& settings,
                         Limits& limits) {
  const Lifetimes found = placeable(graph, plan);
  PlaceSettings inner = settings;
  if (inner.capacity) *inner.capacity -= graph.resident();
  const Placement placed = place(found.buffers, inner, limits);

  PlanPlacement result;
  result.offsets.reserve(found.origins.size());
  for (std::size_t i = 0; i < found.origins.size(); ++i)
    result.offsets.push_back({found.origins[i].step, found.origins[i].tensor, placed.offsets[i]});
  result.arena = checked_add(placed.height, graph.resident());
  result.load = checked_add(placed.load, graph.resident());
  result.bound = checked_add(placed.bound, graph.resident());
  result.status = placed.status;
  result.stopped_by = placed.stopped_by;
  return result;
}

void write_offsets(PlanFile& file, const PlanPlacement& placement, Bytes alignment) {
  file.offsets = placement.offsets;
  file.alignment = alignment;
  file.claims.arena = placement.arena;
}

}  // namespace lowtide::layout
