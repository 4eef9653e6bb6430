// From what a user names to an axis. Private to the folder.
#pragma once

#include "lowtide/plan/dimensions/follow.h"

namespace lowtide::dimensions {

// InputError as follow() says.
Axis axis_of(const Graph& graph, const Seed& seed);

}  // namespace lowtide::dimensions
