// Budgets in bytes: shares need the graph's baseline peak, which only this room can tell.
#pragma once

#include "lowtide/graph/graph.h"
#include "lowtide/plan/budget.h"

namespace lowtide {

// Throws InputError if the share of the peak is beyond 2^63 bytes.
Bytes resolve_budget(const BudgetSpec& spec, const Graph& graph);

}  // namespace lowtide
