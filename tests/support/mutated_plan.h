// Plans changed in one place at random, legal or not: whether a changed plan is legal is for others
// to judge.
#pragma once

#include <string_view>

#include "lowtide/base/random.h"
#include "lowtide/graph/graph.h"
#include "lowtide/plan/plan.h"

namespace lowtide {

enum class Mutation {
  drop,       // a step is left out
  duplicate,  // a step comes twice
  swap,       // two neighbours change places
  move,       // a step goes elsewhere
  retarget,   // a step gets another index, rarely one that does not exist
  rekind,     // a step becomes one of another kind
  insert,     // a random step comes in
  again,      // an op's outputs are freed and it is computed once more
  away,       // a tensor that has been offloaded goes and comes back
  truncate,   // the end is cut off
  forget,     // the machine is gone
};
inline constexpr int kMutations = 11;
std::string_view to_string(Mutation mutation);

// `plan` changed once in that way; unchanged if there is nothing to change.
Plan mutated(Random& random, const Graph& graph, Plan plan, Mutation mutation);

}  // namespace lowtide
