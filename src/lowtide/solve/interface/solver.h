// The interface that every solver has, and the table that everything iterates over: the driver, the
// command line, the conformance tests and the benchmarks.
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

// Whether a solver takes a problem; if not, `reason` says why in a sentence.
struct Support {
  bool yes = true;
  std::string reason;
  static Support no(std::string why) { return {false, std::move(why)}; }
};

// What most solvers support: a budget to keep, not memory to minimise.
inline Support least_time_only(const Problem& problem) {
  if (problem.objective == Objective::least_time) return {};
  return Support::no("it fits a plan into a budget and cannot minimise memory");
}

class Solver;
// What whoever runs a solver asks first: what the solver says of the problem, and that a graph with
// tensors at home on the host needs a machine and is only for those that transfer.
Support support_of(const Solver& solver, const Problem& problem);

// Who stands in for another solver derives from Forwarding, in forwarding.h.
class Solver {
 public:
  virtual ~Solver() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // what it is for, in a line
  virtual std::span<const OptionSpec> options() const { return {}; }
  // What must be there for it to run and is not: empty if nothing is missing. To look for it may
  // take seconds; `stop` ends that.
  virtual std::string missing(const std::function<bool()>& /*stop*/ = {}) const { return {}; }
  // The purposes that it serves; without any, it runs only for those who name it.
  virtual Traits traits() const { return {}; }
  virtual Support supports(const Problem& problem) const = 0;
  // Anytime: offers plans to the context as they come and returns context.finish(), within 50 ms
  // of a cancel or a deadline. Deterministic for the context's seed and work limit.
  virtual Outcome solve(const Problem& problem, Context& context) const = 0;
};

class SolverTable {
 public:
  SolverTable() = default;
  SolverTable(SolverTable&&) = default;
  SolverTable& operator=(SolverTable&&) = default;

  void add(std::unique_ptr<Solver> solver) { solvers_.push_back(std::move(solver)); }
  // In the place of the one of the same name, which must be there.
  void replace(std::unique_ptr<Solver> solver);
  std::span<const std::unique_ptr<Solver>> all() const { return solvers_; }
  const Solver* find(std::string_view name) const;     // null if there is none
  std::vector<const Solver*> with(Trait trait) const;  // in the order of the table
  // The first of those that is neither an engine nor a guest; null if there is none.
  const Solver* own(Trait trait) const;

 private:
  std::vector<std::unique_ptr<Solver>> solvers_;
};

// Every solver of this room, in the order in which people should read of them and in which a
// portfolio asks those of the same trait. The driver adds its own (`auto`).
SolverTable make_solvers();

}  // namespace lowtide::solve
