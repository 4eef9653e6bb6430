// The offsets of a plan file against its steps. Private to the room: check_plan uses it. It shares
// nothing with what places buffers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide {

struct OffsetFault {
  std::optional<std::size_t> step;  // where there is one; none: the start
  std::string reason;
};

// Every tensor that begins to live and every workspace has exactly one offset, a multiple of the
// alignment; what lives at the same step is apart, and ends, with the resident bytes, within the
// claimed arena. What has no bytes has no offset. `plan` breaks no rule on `graph`, and `offsets`
// are in the indices of both.
std::optional<OffsetFault> offset_fault(const Graph& graph, const Plan& plan, const PlanFile& file,
                                        const std::vector<PlannedOffset>& offsets);

}  // namespace lowtide
