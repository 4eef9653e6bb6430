// From a question to a verified answer: finds the solver, reduces the question to a problem that
// the solver supports, runs it, and verifies its plan before the caller sees it.
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

// Whether the answer may have transforms that the question does not list. That is so if
// may_transform (transform_search.h) is true, and the solver is a portfolio or has the trait
// `transforms`.
bool looks_for_transforms(const solve::SolverTable& solvers, std::string_view solver,
                          const Question& question);

// Answers the question. Throws InputError for problems that require_plannable refuses, and for
// unknown solvers and options (the message lists the known ones). Throws InternalError if a
// solver's plan does not verify or its claims cannot be true. Throws as apply_transforms does for
// illegal transforms.
//
// The solver runs on a reduced problem (reduction.h): transforms are applied, the graph has only
// the allowed techniques, limits of single ops are workspaces, and all ops run on the compute lane.
// The answer is one to the question itself. transform_search.h describes the search for transforms
// that pay.
Answer solve(const solve::SolverTable& solvers, const Question& question, const Request& request);
Answer solve(const solve::SolverTable& solvers, const Problem& problem, const Request& request);

}  // namespace lowtide::driver
