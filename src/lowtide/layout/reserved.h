// The bytes that a plan's file says an allocator reserves for it.
#pragma once

#include <optional>
#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/layout/allocator/settings.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide::layout {

// The peak over kFootprintSteps steps, on a device without a limit. Of a plan that breaks no rule;
// throws as `plan_trace` does.
Bytes reserved_bytes(const Graph& graph, const Plan& plan, const AllocatorSettings& settings);

// What is false of the file's claim of reserved bytes, as a sentence; none if it holds or if
// nothing is claimed. Of a file that `check_plan` has found to hold.
std::optional<std::string> reserved_fault(const Graph& graph, const PlanFile& file);

}  // namespace lowtide::layout
