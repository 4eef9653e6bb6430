// A solver that stands in for another and is asked instead of it. It answers every question as that
// one does; who derives from it changes only what is meant to be different. Whatever wraps a solver
// derives from this class and not from Solver: a question that is added to the interface is then
// forwarded in this one place, and tests/solve/forwarding_test.cpp fails as long as it is not.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve {

class Forwarding : public Solver {
 public:
  // `to` must outlive this.
  explicit Forwarding(const Solver& to) : to_(to) {}

  std::string_view name() const override { return to_.name(); }
  std::string_view summary() const override { return to_.summary(); }
  std::span<const OptionSpec> options() const override { return to_.options(); }
  std::string missing(const std::function<bool()>& stop) const override {
    return to_.missing(stop);
  }
  Traits traits() const override { return to_.traits(); }
  Support supports(const Problem& problem) const override { return to_.supports(problem); }
  Outcome solve(const Problem& problem, Context& context) const override {
    return to_.solve(problem, context);
  }

 private:
  const Solver& to_;
};

}  // namespace lowtide::solve
