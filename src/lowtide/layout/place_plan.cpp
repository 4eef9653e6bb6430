#include "lowtide/layout/place_plan.h"

#include <algorithm>

#include "lowtide/layout/lifetimes.h"

namespace lowtide::layout {

PlanPlacement place_plan(const Graph& graph, const Plan& plan, const PlaceSettings& settings,
                         Limits& limits) {
  const Lifetimes found = lifetimes(graph, plan);
  std::vector<Buffer> buffers;
  std::vector<BufferOrigin> origins;
  for (std::size_t i = 0; i < found.buffers.size(); ++i) {
    if (found.origins[i].kind == BufferOrigin::Kind::resident) continue;
    buffers.push_back(found.buffers[i]);
    origins.push_back(found.origins[i]);
  }
  PlaceSettings inner = settings;
  if (inner.capacity) *inner.capacity -= graph.resident();
  const Placement placed = place(buffers, inner, limits);

  PlanPlacement result;
  result.offsets.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i)
    result.offsets.push_back({origins[i].step, origins[i].tensor, placed.offsets[i]});
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
