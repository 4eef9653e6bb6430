// Finds transforms of a graph that pay, for one problem. See transform_search.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/request.h"

namespace lowtide::driver {

// Solves a problem whose list of transforms is fixed.
using SolveSaid = std::function<Answer(const Problem&, const Request&)>;

// Whether transforms are looked for: they are allowed, and the problem lists none.
bool may_transform(const Problem& problem);

// The answer with the transforms that pay, or with none; the limits are for the whole search.
// Bounds, and `optimal`, are those of the transformed graph. Without any plan nothing is proven:
// the status is unknown.
Answer search_transforms(const Problem& problem, const Request& request, const SolveSaid& solve);

}  // namespace lowtide::driver
