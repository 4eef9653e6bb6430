#include "lowtide/layout/reserved.h"

#include "lowtide/base/error.h"
#include "lowtide/layout/allocator/replay.h"
#include "lowtide/layout/footprint.h"
#include "lowtide/layout/plan_trace.h"

namespace lowtide::layout {

Bytes reserved_bytes(const Graph& graph, const Plan& plan, const AllocatorSettings& settings) {
  return replay(plan_trace(graph, plan, kFootprintSteps), settings).peaks.reserved;
}

std::optional<std::string> reserved_fault(const Graph& graph, const PlanFile& file) {
  if (!file.claims.reserved) return std::nullopt;
  try {
    const Bytes found = reserved_bytes(graph, file.plan, parse_allocator_settings(file.allocator));
    if (found == *file.claims.reserved) return std::nullopt;
    return "the claimed \"reserved\" is " + std::to_string(file.claims.reserved->count()) +
           " bytes, yet the allocator's model reserves " + std::to_string(found.count());
  } catch (const InputError& error) {
    return std::string("the \"allocator\" of the file is refused: ") + error.what();
  }
}

}  // namespace lowtide::layout
