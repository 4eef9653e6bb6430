// Which transforms of a graph pay, for one problem. See transform_search.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lowtide/driver/request.h"

namespace lowtide::driver {

// More ops than this one transform may not make to be looked at.
inline constexpr std::int64_t kMostMadeOps = 50'000;

// On what parts are priced.
const Device& device_for(const Problem& problem);

// Answers a problem whose transforms are said, none or some.
using SolveSaid = std::function<Answer(const Problem&, const Request&)>;

// Whether there is anything to look for: transforms are allowed, and none is said.
bool may_transform(const Problem& problem);

// What no transform can make less: what is live from the start and may never leave.
Bytes always_live(const Problem& problem);

// The answer with the transforms that were found to pay, or with none; the limits are for all of
// it. What is bounded, and `optimal`, are for the graph that they make. Where no plan is found with
// or without them nothing is proven: the status is unknown.
Answer search_transforms(const Problem& problem, const Request& request, const SolveSaid& solve);

}  // namespace lowtide::driver
