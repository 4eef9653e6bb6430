// Looks for plans that take less near a plan, by small changes of the order in which it computes.
// Private to the room. See footprint_walk.cpp.
#pragma once

#include <cstdint>
#include <functional>

#include "lowtide/base/limits.h"
#include "lowtide/plan/frontier.h"
#include "lowtide/plan/plan.h"
#include "lowtide/plan/question.h"

namespace lowtide::driver {

// What a plan takes, of one that keeps every rule but the budget.
using MeasureBytes = std::function<Bytes(const Plan&, const Cost&)>;

// From a plan that was measured, until the limits end or nothing has become better for long.
// Towards the budget of the question in what plans take, and within it towards shorter plans. The
// caller keeps what it measures. A plan with transfers or transforms stays as it is.
void walk_footprints(const Question& question, const Frontier::Entry& start, std::uint64_t seed,
                     const MeasureBytes& measure, Limits& limits);

}  // namespace lowtide::driver
