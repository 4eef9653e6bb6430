// From a question to a verified answer: finds the solver, asks whether it takes the problem, runs
// it and verifies its plan before anyone sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

struct Request {
  std::string solver = "auto";
  LimitSettings limits;
  std::uint64_t seed = 0;
  int threads = 1;
  std::vector<std::pair<std::string, std::string>> options;  // of the solver
  // Best first. They may be over the budget and of other links, of which they take the problem's;
  // those that break another rule are left out.
  std::vector<Plan> starts;
  Bound known;  // proven of the problem before; zero if nothing is
  solve::Watcher watcher;
};

struct Answer {
  solve::Support
      support;  // if not `yes`, the solver does not take the problem; `outcome` has no plan
  Outcome outcome;
  std::int64_t work = 0;  // done, of what the limits count
  // Of use to solves for other budgets, not verified; see Context. `smallest` only if it is smaller
  // than the outcome's plan.
  std::optional<Plan> repair_start, smallest;
};

// What whoever asks gets where nothing is said: ten seconds, or no clock with a limit of work, so
// that the run repeats exactly; and all cores for 0 threads.
LimitSettings limits_or_default(std::optional<double> seconds, std::optional<std::int64_t> work,
                                const CancelToken& cancel);
int threads_or_all(int threads);

// All solvers, the driver's own `auto` last.
solve::SolverTable all_solvers();

// Throws InputError for what require_plannable refuses, and for a solver or an option
// that there is not (the message lists those that there are), InternalError if a solver's plan does
// not verify or its claims cannot be true. The transforms of the problem are done first: solvers
// plan the graph that they make, and what comes back is of the graph asked about. For those that
// may not be done it throws as apply_transforms does. Where the problem names none and its
// techniques have split or hoist, a portfolio looks for those that pay (transform_search.h).
Answer solve(const solve::SolverTable& solvers, const Problem& problem, const Request& request);

}  // namespace lowtide::driver
