// What a plan asks of an allocator, over several steps of training in a row.
#pragma once

#include "lowtide/graph/graph.h"
#include "lowtide/layout/allocator/trace.h"
#include "lowtide/plan/plan.h"

namespace lowtide::layout {

// Before the first step: resident bytes, then parameters, state and constants, by index; they keep
// their memory from step to step, or what brought them back from the host last. In each step: its
// inputs, and all that the plan allocates and frees, as `lifetimes` lists it; then what is live and
// belongs to the step is freed: outputs in the order of their allocation, and the inputs. Inputs
// that a plan may free belong to the step too. All on stream 0: the copies of a plan have streams
// of their own, but a free waits for them, and their memory comes from the stream that computes.
//
// Of a plan that breaks no rule; throws as `lifetimes` does.
Trace plan_trace(const Graph& graph, const Plan& plan, int steps);

}  // namespace lowtide::layout
