// Plans that others build on are verified first.
#pragma once

#include "objects.h"

namespace lowtide::python {

// The cost of a plan that holds; without a graph's hash it is taken to be for this one. Throws
// PlanRefused or WrongGraph otherwise.
Cost require_holding(const Graph& graph, PlanFile file);

}  // namespace lowtide::python
