// `verify`, with every plan that the tests put before it kept for the second verifier: if
// LOWTIDE_RECORD names a file, each LOWTIDE_RECORD_STRIDE-th (1 unless set) is appended to it with
// the verdict, as support/case_writer.h says.
#pragma once

#include <string_view>

#include "lowtide/sim/verify.h"

namespace lowtide {

Verdict judge(const Problem& problem, const Plan& plan);

// Without a budget, in any order; asserts the verdict and returns the cost.
Cost accept(const Graph& graph, const Plan& plan);
// Asserts that the plan is refused at that step (the number of steps: at the end) for a reason that
// contains `why`.
void refuse(const Graph& graph, const Plan& plan, std::size_t step, std::string_view why);

}  // namespace lowtide
