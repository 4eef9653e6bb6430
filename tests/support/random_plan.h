// Random legal plans, with all four kinds of step.
#pragma once

#include "lowtide/base/random.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/problem.h"

namespace lowtide {

struct RandomPlanSettings {
  Order order = Order::free;
  bool transfers = true;
  double restless = 0.5;  // how much is tried beside what the ops need, between 0 and 1
};

// Links with times between nothing and several ops' worth, rounding included.
Machine random_machine(Random& random);

// A random walk through legal steps that ends where a plan may end: ops in a random (or the given)
// order, and between them frees, offloads, prefetches and recomputations that nobody asked for.
Plan random_plan(Random& random, const Graph& graph, const RandomPlanSettings& settings = {});

}  // namespace lowtide
