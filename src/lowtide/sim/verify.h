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

// Whether the plan is one for the question: every rule of docs/reference/cost.md, the order of
// first computations, the budget, the limits of single ops and the time limit. The plan's own
// machine prices its transfers; it must be the problem's. A problem without a machine allows no
// transfers; its techniques allow what they name. A plan with transforms is verified on the graph
// that they make: each is applied again, unless the question's cache has the graph, and one that is
// not legal is a violation at step 0.
Verdict verify(const Question& question, const Plan& plan);
Verdict verify(const Problem& problem, const Plan& plan);

}  // namespace lowtide
