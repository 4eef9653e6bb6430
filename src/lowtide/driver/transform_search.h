// Which transforms of a graph pay, for one question. See transform_search.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/request.h"
#include "lowtide/plan/question.h"

namespace lowtide::driver {

// Answers the question with these transforms, none or some: looks for no others.
using SolveTrial = std::function<Answer(const Question&, const Request&)>;

// Whether there is anything to look for: transforms are allowed, and the question names none.
bool may_transform(const Question& question);

// The answer with the transforms that were found to pay, or with none; the limits are for all of
// it. What is bounded, and `optimal`, are for the graph that they make. Where no plan is found with
// or without them nothing is proven: the status is unknown.
Answer search_transforms(const Question& question, const Request& request, const SolveTrial& solve);

}  // namespace lowtide::driver
