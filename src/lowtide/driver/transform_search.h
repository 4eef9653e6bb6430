// Finds transforms of a graph that pay, for one question. See transform_search.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/request.h"
#include "lowtide/plan/question.h"

namespace lowtide::driver {

// Answers a question whose list of transforms is fixed.
using SolveTrial = std::function<Answer(const Question&, const Request&)>;

// Whether transforms are looked for: they are allowed, and the question lists none, has no live
// limits and asks for the least time.
bool may_transform(const Question& question);

// The answer with the transforms that pay, or with none; the limits are for the whole search.
// Bounds, and `optimal`, are those of the transformed graph. Without any plan nothing is proven:
// the status is unknown.
Answer search_transforms(const Question& question, const Request& request, const SolveTrial& solve);

}  // namespace lowtide::driver
