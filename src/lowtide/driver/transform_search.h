// Which transforms of a graph pay, for one problem. See transform_search.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/request.h"

namespace lowtide::driver {

// Answers a problem whose transforms are said, none or some.
using SolveSaid = std::function<Answer(const Problem&, const Request&)>;

// Whether there is anything to look for: transforms are allowed, and none is said.
bool may_transform(const Problem& problem);

// The answer with the transforms that were found to pay, or with none; the limits are for all of
// it. What is bounded, and `optimal`, are for the graph that they make. Where no plan is found with
// or without them nothing is proven: the status is unknown.
Answer search_transforms(const Problem& problem, const Request& request, const SolveSaid& solve);

}  // namespace lowtide::driver
