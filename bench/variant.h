// A solver with an option of one of its parts changed, or without one of its parts: what shows
// whether a heuristic earns its place.
#pragma once

#include <string>
#include <vector>

#include "lowtide/solve/interface/solver.h"

namespace lowtide::bench {

struct Variant {
  std::vector<std::string> options;  // "solver.name=value"
  std::vector<std::string> without;  // solvers
  std::string label() const;         // "base" if nothing differs
};

// `solvers` with other defaults; they must outlive the table. Throws InputError for a solver, an
// option or a value that there is not.
solve::SolverTable vary(const solve::SolverTable& solvers, const Variant& variant);

// One variant for each option that switches something on or off, the other way round. For a solver
// that is made of others (`auto`): its own, those of every part, and without every part; otherwise
// its own only.
std::vector<Variant> ablations(const solve::SolverTable& solvers, const std::string& solver);

}  // namespace lowtide::bench
