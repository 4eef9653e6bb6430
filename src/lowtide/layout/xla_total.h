// What XLA's buffer assignment takes for a plan: arguments, outputs and temporaries, without
// aliases, as memory_analysis() of a compiled program reports them.
//
// It is more than the peak, because outputs have buffers of their own from the start to the end;
// and less than that suggests, because temporaries that fit lie in them.
#pragma once

#include "lowtide/base/units.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan.h"

namespace lowtide::layout {

// Of a plan that breaks no rule. An input that may be freed counts as donated: its buffer is free
// for an output of its size, or for what fits, when it is dead.
//
// XLA does not say in which order it puts equal buffers; figures differ from its own by what that
// leaves open, and by what a library call takes.
Bytes xla_total(const Graph& graph, const Plan& plan);

}  // namespace lowtide::layout
