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
  // Whether an engine of somebody else's does the work, in a process of its own: it takes tenths of
  // a second to begin, and joins a portfolio only under a clock.
  virtual bool external() const { return false; }
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
  std::span<const std::unique_ptr<Solver>> all() const { return solvers_; }
  const Solver* find(std::string_view name) const;  // null if there is none

 private:
  std::vector<std::unique_ptr<Solver>> solvers_;
};

// Every solver of this room, in the order in which people should read of them. The driver adds its
// own (`auto`).
SolverTable make_solvers();

}  // namespace lowtide::solve
