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

// The plan of the own order of the graph that transforms have made, on the original graph. Nothing
// has verified it.
Plan own_order_plan(const Applied& applied, const std::optional<Machine>& machine);

// Of single regions in parts, behind a hoist where there may be one, those that are estimated to
// need less memory than all that take less time; the largest first. They may be over the question's
// budget and are not verified. Ends early as soon as `stops` says so.
std::vector<Plan> split_orders(const Question& question, const std::function<bool()>& stops);

}  // namespace lowtide::driver
