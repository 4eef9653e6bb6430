// The gate checks a solver's claims and verifies its plan before the caller sees them. Private to
// the room.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/question.h"

namespace lowtide::driver {

class Gate {
 public:
  explicit Gate(std::string_view solver) : solver_(solver) {}

  // Throws InternalError unless status, plan, cost and bound agree with one another.
  void check_claims(const Outcome& outcome) const;
  // The same, and the plan must verify for the question, at the cost in the outcome.
  void verify(const Question& question, const Outcome& outcome);
  // The number of verified plans.
  int verifications() const { return verifications_; }

 private:
  void demand(bool holds, const std::string& violation) const;

  std::string solver_;
  int verifications_ = 0;
};

}  // namespace lowtide::driver
