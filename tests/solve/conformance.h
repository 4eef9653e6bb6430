// What must hold of every solver's answer, whatever the solver, the problem and the limits. The
// suites in this folder ask the questions; these functions judge the answers by doctest assertions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lowtide/solve/interface/solver.h"

#include "oracles/brute_force.h"

namespace lowtide {

// One solve and what it cost. Every plan that the solver reports on the way is judged too.
struct Answered {
  Outcome outcome;
  std::int64_t work = 0, polls = 0;
  double seconds = 0;
};
Answered ask(const solve::SolverTable& table, const solve::Solver& solver, const Problem& problem,
             solve::ContextSettings settings);
// The solver's own defaults, no limits.
solve::ContextSettings settings_for(const solve::Solver& solver);

// Plan, claims, history and bound fit together, and the plan is what verify finds.
void check_answer(const Problem& problem, const solve::SolverTable& table,
                  const Answered& answered);

// Every schedule of the problem that nothing beats, whatever its budget, by brute force.
std::vector<oracle::Schedule> all_tradeoffs(const Problem& problem);

// The claims are true, by every schedule that nothing beats.
void check_truth(const Problem& problem, const Outcome& outcome,
                 const std::vector<oracle::Schedule>& curve);

// Byte for byte the same steps and claims; seconds aside.
void check_same(const Answered& a, const Answered& b);

// All of the above for each solver that takes the problem, at each telling budget; the seed decides
// on options, starts and a limit of work. `problem.budget` does not count.
void examine(const solve::SolverTable& table, const Problem& problem, std::uint64_t seed,
             const std::vector<oracle::Schedule>& curve);

// Several limits of work, each kept and each with the same answer twice. Within the largest a poll
// comes for every unit of work between polls, and work stands for time.
void check_work_limits(const solve::SolverTable& table, const solve::Solver& solver,
                       const Problem& problem);

// Budgets from hopeless to generous, all the edges of the curve among them.
std::vector<Bytes> telling_budgets(const Problem& problem,
                                   const std::vector<oracle::Schedule>& curve);

// What a solver may do beyond its limit of work: the units between two polls and one pass over the
// graph, since a first plan cannot be had for less.
std::int64_t slack(const Graph& graph);

// Values drawn from the solver's own table of options.
solve::Options random_options(Random& random, const solve::Solver& solver);

// The solvers that take the problem and lack nothing. A refusal must say why.
std::vector<const solve::Solver*> takers(const solve::SolverTable& table, const Problem& problem);

}  // namespace lowtide
