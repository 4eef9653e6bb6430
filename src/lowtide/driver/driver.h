// From a question to a verified answer: finds the solver, reduces the question to a problem that
// the solver takes, runs it, and verifies its plan before anyone sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lowtide/base/limits.h"
#include "lowtide/driver/request.h"
#include "lowtide/plan/question.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

// The defaults of all front ends: ten seconds, or no time limit if there is a work limit, so that
// the run repeats exactly; all cores for 0 threads.
LimitSettings limits_or_default(std::optional<double> seconds, std::optional<std::int64_t> work,
                                const CancelToken& cancel);
int threads_or_all(int threads);

// All solvers; the driver's own `auto` is the last.
solve::SolverTable all_solvers();

// Whether the answer may have transforms that the question does not name: it names none, its
// techniques have split or hoist, and the solver is a portfolio or looks for them itself; to others
// a graph is a graph.
bool looks_for_transforms(const solve::SolverTable& solvers, std::string_view solver,
                          const Question& question);

// Throws InputError for what require_plannable refuses, and for a solver or an option
// that there is not (the message lists those that there are), InternalError if a solver's plan does
// not verify or its claims cannot be true. The solver runs on a reduced problem (reduction.h):
// transforms are applied, the graph has nothing to use but the techniques allowed, limits of single
// ops are workspaces. The answer is one to the question itself. For transforms that are not legal
// it throws as apply_transforms does. transform_search.h has how transforms that pay are looked
// for.
Answer solve(const solve::SolverTable& solvers, const Question& question, const Request& request);
Answer solve(const solve::SolverTable& solvers, const Problem& problem, const Request& request);

}  // namespace lowtide::driver
