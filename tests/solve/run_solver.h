// One solver on one problem, with options as "name=value name=value".
#pragma once

#include <string_view>

#include "lowtide/solve/interface/solver.h"

namespace lowtide {

// The plan, if there is one, has passed `judge`.
Outcome run_solver(const solve::Solver& solver, const Problem& problem,
                   std::string_view options = {}, solve::ContextSettings settings = {});

// The ops that the plan computes, by index: "0 1 2 0"; "none" without a plan.
std::string computes(const Outcome& outcome);

}  // namespace lowtide
