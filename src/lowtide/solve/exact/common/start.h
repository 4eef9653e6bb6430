// The start plan of an exact model.
#pragma once

#include <optional>
#include <vector>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::exact {

// The option `start`: given, auto or none.
OptionSpec start_option();

// The start plan as a sequence: the best plan that the caller gave, or that `auto` finds in a share
// of the limits; if none keeps the budget, the one with the smallest peak; nullopt if the option
// says none. Plans found on the way are offered to the context.
std::optional<std::vector<OpId>> start_from_others(const Problem& problem, Context& context);

}  // namespace lowtide::solve::exact
