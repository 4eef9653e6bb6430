// Plans without recomputation: the unplanned steps of split graphs. Runs for many budgets start
// from them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lowtide/plan/plan.h"
#include "lowtide/plan/question.h"
#include "lowtide/transforms/apply.h"

namespace lowtide::driver {

// The unplanned step of the transformed graph, as a plan for the original graph. It is not
// verified.
Plan own_order_plan(const Applied& applied, const std::optional<Machine>& machine);

// Splits of single regions, after a hoist if that is possible. Returns those on the Pareto front of
// estimated memory and time; the largest peak first. The plans may exceed the question's budget,
// and are not verified. Ends early if `stops` returns true.
std::vector<Plan> split_orders(const Question& question, const std::function<bool()>& stops);

}  // namespace lowtide::driver
