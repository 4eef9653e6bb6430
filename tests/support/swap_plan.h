// Plans that send to the host, drop or keep what is needed after one op: near the best there is,
// where a random walk (random_plan.h) is far from it.
#pragma once

#include <optional>

#include "lowtide/base/random.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/problem.h"

namespace lowtide {

// Around a random op, with a random choice for each tensor; copies go out as early and come back
// as early or as late as they can. None if something chosen to be made again cannot be. A plan that
// breaks a rule is possible: verify it.
std::optional<Plan> swap_plan(Random& random, const Graph& graph, Order order,
                              const Machine& machine);

}  // namespace lowtide
