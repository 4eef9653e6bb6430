// Random legal plans, with all four kinds of step, and plans changed in one place at random, legal
// or not. Whether a changed plan is legal is for others to judge.
#pragma once

#include <string_view>

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

enum class Mutation {
  drop,       // a step is left out
  duplicate,  // a step comes twice
  swap,       // two neighbours change places
  move,       // a step goes elsewhere
  retarget,   // a step gets another index, rarely one that does not exist
  rekind,     // a step becomes one of another kind
  insert,     // a random step comes in
  truncate,   // the end is cut off
  forget,     // the machine is gone
};
inline constexpr int kMutations = 9;
std::string_view to_string(Mutation mutation);

// `plan` changed once in that way; unchanged if there is nothing to change.
Plan mutated(Random& random, const Graph& graph, Plan plan, Mutation mutation);

}  // namespace lowtide
