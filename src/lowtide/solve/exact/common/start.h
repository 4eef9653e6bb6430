// The plan from which an exact model begins.
#pragma once

#include <optional>
#include <vector>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::exact {

// `start`: given, auto or none.
OptionSpec start_option();

// What such a solver begins with: the best plan that it was given or that `auto` finds in a part of
// the limits, as a sequence; the one with the smallest peak if none keeps the budget; nothing if
// that is the choice. What is found on the way is offered to the context.
std::optional<std::vector<OpId>> start_from_others(const Problem& problem, Context& context);

}  // namespace lowtide::solve::exact
