// A solver that forwards every call to another solver. Wrappers of solvers derive from this class
// and not from Solver, and override only what differs. A function that is added to the interface is
// then forwarded here, in one place; tests/solve/forwarding_test.cpp fails until it is.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve {

class Forwarding : public Solver {
 public:
  // `to` must outlive this object.
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
