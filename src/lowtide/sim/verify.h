// The verifier: the driver passes every plan to it before returning it.
#pragma once

#include <optional>
#include <string>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/question.h"
#include "lowtide/sim/simulate.h"

namespace lowtide {

struct Verdict {
  bool ok = false;
  Cost cost;
  std::optional<Violation> violation;  // present if not ok
};

// Whether the plan answers the question: it keeps every rule of docs/reference/cost.md, the order
// of first computations, the budget, the live limits and the time limit. The plan's own machine
// prices its transfers; it must be the problem's. A problem without a machine allows no transfers,
// and only allowed techniques may be used. A plan with transforms is verified on its transformed
// graph: each transform is applied again, unless the question's cache has the result; an illegal
// one is a violation at step 0.
Verdict verify(const Question& question, const Plan& plan);
Verdict verify(const Problem& problem, const Plan& plan);

}  // namespace lowtide
