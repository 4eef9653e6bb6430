// The interface of solvers, and their table, which the driver, the command line, the conformance
// tests and the benchmarks use.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/interface/options.h"
#include "lowtide/solve/interface/traits.h"

namespace lowtide::solve {

// Whether a solver supports a problem; if not, `reason` is a sentence.
struct Support {
  bool yes = true;
  std::string reason;
  static Support no(std::string why) { return {false, std::move(why)}; }
};

// Supports problems that minimise time within a budget, as most solvers do.
inline Support least_time_only(const Problem& problem) {
  if (problem.objective == Objective::least_time) return {};
  return Support::no("it fits a plan into a budget and cannot minimise memory");
}

class Solver;
// The support of a solver for a problem: its own answer, and that a graph with tensors at home on
// the host needs a machine and a solver with the trait `transfers`.
Support support_of(const Solver& solver, const Problem& problem);

// Wrappers of solvers derive from Forwarding, in forwarding.h.
class Solver {
 public:
  virtual ~Solver() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // its purpose, in one line
  virtual std::span<const OptionSpec> options() const { return {}; }
  // What the solver needs but is not installed; empty if nothing is missing. The search for it may
  // take seconds; `stop` ends it.
  virtual std::string missing(const std::function<bool()>& /*stop*/ = {}) const { return {}; }
  // The purposes of the solver; without any, it runs only if it is named.
  virtual Traits traits() const { return {}; }
  virtual Support supports(const Problem& problem) const = 0;
  // Anytime: offers plans to the context as it finds them, and returns context.finish() within 50
  // ms of a cancel or a deadline. Deterministic for the context's seed and work limit.
  virtual Outcome solve(const Problem& problem, Context& context) const = 0;
};

class SolverTable {
 public:
  SolverTable() = default;
  SolverTable(SolverTable&&) = default;
  SolverTable& operator=(SolverTable&&) = default;

  void add(std::unique_ptr<Solver> solver) { solvers_.push_back(std::move(solver)); }
  // Replaces the solver of the same name, which must exist.
  void replace(std::unique_ptr<Solver> solver);
  std::span<const std::unique_ptr<Solver>> all() const { return solvers_; }
  const Solver* find(std::string_view name) const;     // null if there is none
  std::vector<const Solver*> with(Trait trait) const;  // in the order of the table
  // The first of those that is neither external nor a guest; null if there is none.
  const Solver* own(Trait trait) const;

 private:
  std::vector<std::unique_ptr<Solver>> solvers_;
};

// All solvers of this room, in the order of the documentation, in which a portfolio also runs
// solvers of the same trait. The driver adds its own (`auto`).
SolverTable make_solvers();

}  // namespace lowtide::solve
