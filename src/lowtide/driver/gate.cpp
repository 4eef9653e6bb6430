#include "lowtide/driver/gate.h"

#include "lowtide/base/error.h"
#include "lowtide/sim/verify.h"

namespace lowtide::driver {

void Gate::demand(bool holds, const std::string& violation) const {
  if (!holds) throw InternalError("solver " + solver_ + ": " + violation);
}

void Gate::check_claims(const Outcome& outcome) const {
  const bool has_plan = outcome.status == Status::optimal || outcome.status == Status::feasible;
  demand(has_plan == outcome.plan.has_value(), "its status and its plan contradict each other");
  demand(!has_plan || (outcome.bound.duration <= outcome.cost.duration &&
                       outcome.bound.peak <= outcome.cost.peak),
         "its bound is above its own plan");
}

void Gate::verify(const Question& question, const Outcome& outcome) {
  if (outcome.plan) {
    const Verdict verdict = lowtide::verify(question, *outcome.plan);
    ++verifications_;
    demand(verdict.ok,
           "its plan does not verify: " + (verdict.ok ? "" : verdict.violation->reason));
    demand(verdict.cost == outcome.cost, "its plan does not cost what it claims");
  }
  check_claims(outcome);
}

}  // namespace lowtide::driver
