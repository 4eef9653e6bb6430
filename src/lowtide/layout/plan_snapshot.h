// The snapshot of an allocator that runs one step of a plan, with every byte at its planned offset.
#pragma once

#include "lowtide/graph/graph.h"
#include "lowtide/layout/snapshot.h"
#include "lowtide/plan/plan_file.h"

namespace lowtide::layout {

// At the file's offsets; where it has none, at those that `place` finds. Two segments: the resident
// bytes, if there are any, and the arena, as high as the offsets need. What is there before the
// first step is allocated first. Sizes are the tensors' own, so the most bytes allocated at once
// are the peak of the plan. A stack is the op and its place in the model; of what no op makes, the
// tensor and its role. A free has the stack of its allocation. Times are those of the simulation; a
// tick of a graph without a unit of time is taken for a microsecond.
//
// Deterministic. Of a file that `check_plan` has found to hold. Throws as `place_plan` does.
Snapshot plan_snapshot(const Graph& graph, const PlanFile& file);

}  // namespace lowtide::layout
