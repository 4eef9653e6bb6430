// Plans without recomputation: the unplanned steps of split graphs. Runs for many budgets start
// from them.
#pragma once

#include <functional>
#include <vector>

#include "lowtide/plan/plan.h"
#include "lowtide/plan/problem.h"

namespace lowtide::driver {

// Splits of single regions, after a hoist if that is possible. Returns those on the Pareto front of
// estimated memory and time; the largest peak first. The plans may exceed the problem's budget, and
// are not verified. Ends early if `stops` returns true.
std::vector<Plan> split_orders(const Problem& problem, const std::function<bool()>& stops);

}  // namespace lowtide::driver
