// A reduction makes a simpler problem from a question or a problem, and converts answers to the
// simpler problem into answers to the original one, like presolve and postsolve of a MIP solver. So
// a solver handles one kind of problem, and everything else that a user may ask is reduced to it.
#pragma once

#include <vector>

#include "lowtide/driver/request.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::driver {

// A reduction serves one solve. The original problem must outlive it.
class Reduction {
 public:
  Reduction() = default;
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;
  virtual ~Reduction() = default;

  // The reduced problem, which lives as long as this object.
  virtual const Problem& problem() const = 0;

  // Converts start plans for the original problem into start plans for the reduced one, in the same
  // order. Omits plans without a counterpart.
  virtual std::vector<Plan> starts(std::vector<Plan> plans) const { return plans; }

  // Returns a watcher for the solve of the reduced problem. It calls `watcher`, unless that is
  // empty, with the same progress in terms of the original problem. Called once; the watcher must
  // not outlive this object.
  virtual solve::Watcher translate(solve::Watcher watcher) { return watcher; }

  // Turns an answer to the reduced problem into an answer to the original one.
  virtual void bring_back(Answer& /*answer*/) const {}
};

}  // namespace lowtide::driver
