// The gate: what a solver claims is checked, and its plan verified, before anyone sees them.
// Private to the room.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/question.h"

namespace lowtide::driver {

class Gate {
 public:
  explicit Gate(std::string_view solver) : solver_(solver) {}

  // Status, plan, cost and bound must agree with one another. InternalError otherwise.
  void check_claims(const Outcome& outcome) const;
  // The same, and the plan must verify for the question, at the cost that the outcome says.
  void verify(const Question& question, const Outcome& outcome);
  // How many plans were verified.
  int verifications() const { return verifications_; }

 private:
  void demand(bool holds, const std::string& violation) const;

  std::string solver_;
  int verifications_ = 0;
};

}  // namespace lowtide::driver
