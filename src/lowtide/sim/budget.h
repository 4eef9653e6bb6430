// Converts budgets to bytes: shares need the graph's baseline peak, which this room computes.
#pragma once

#include "lowtide/graph/graph.h"
#include "lowtide/plan/budget.h"

namespace lowtide {

// Throws InputError if the share of the peak is 2^63 bytes or more.
Bytes resolve_budget(const BudgetSpec& spec, const Graph& graph);

}  // namespace lowtide
