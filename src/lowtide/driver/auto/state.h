// The state of a run of `auto`, which its phases query and from which they make tasks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lowtide/driver/auto/choice.h"
#include "lowtide/driver/auto/task.h"
#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

// The options of `auto`, indexed like the tables of phases and recipes; 0: switched off.
struct AutoSettings {
  std::vector<double> phase_shares, recipe_weights, order_weights;
};

// One epoch. Each is twice as long as the one before.
struct Epoch {
  std::uint64_t number = 0;
  std::int64_t slice = 0;  // work of a lane
  // Proofs are due: the run is far enough, or there is no plan, or there is a link, which the phase
  // `bounds` ignores.
  bool proves = false;
  bool stands = false;  // stagnation: the epoch before found no better plan
};

class AutoState {
 public:
  AutoState(const Problem& problem, solve::Context& context, const AutoSettings& settings);
  AutoState(const AutoState&) = delete;
  AutoState& operator=(const AutoState&) = delete;

  const Problem& problem() const { return problem_; }
  const Problem& problem_of(const Task& task) const {
    return task.in_given_order ? given_ : problem_;
  }
  const solve::Context& context() const { return context_; }
  solve::Context& context() { return context_; }
  std::int64_t ops() const { return ops_; }
  bool has_plan() const { return context_.has_plan(); }
  Ticks best_duration() const {
    return context_.has_plan() ? context_.best_cost().duration : Ticks::max();
  }
  // Whether the run has a time limit.
  bool has_time_limit() const { return has_time_limit_; }
  bool unlimited() const { return !has_time_limit_ && !context_.limits().settings().work; }
  int threads() const { return threads_; }

  const Epoch& epoch() const { return epoch_; }
  void begin_epoch();
  void end_epoch();
  // The terms of a lane in this epoch.
  LaneTerms lane_terms() const;

  // The solvers with the trait that support the problem, or the same problem in the given order, in
  // the order of the table of solvers. External engines and solvers that were left out are missing.
  std::vector<const solve::Solver*> solvers(solve::Trait trait) const;
  // The first of solvers(trait) that the user has not registered; null if there is none.
  const solve::Solver* first(solve::Trait trait) const;
  // The registered solvers that have a trait besides `guest` and `transfers`.
  std::vector<const solve::Solver*> guests() const;
  // An engine that proves bounds, if it is found on this machine within a share of the time left.
  // Otherwise null, also for all later calls.
  const solve::Solver* engine();
  // Excludes a solver that has finished or failed from all later tasks.
  void leave_out(const solve::Solver* solver) { left_out_.push_back(solver); }

  // A task with a share of the remaining limits. It solves the problem itself if the solver
  // supports that, otherwise the problem in the given order.
  Task task(const solve::Solver* solver, std::int64_t work, double share) const;
  // The same, but in the given order if the solver supports that: its search space is smaller.
  Task task_in_given_order(const solve::Solver* solver, std::int64_t work, double share) const;
  // A task of the bounds. None if it would get less than twice the work of the last one: each proof
  // starts from the beginning, and would only find the same bound.
  std::vector<Task> proof(std::int64_t work);
  // A task of the search, with recipes that the bandits choose. Lanes of an epoch differ in
  // `number`.
  Task lane(int number, const LaneTerms& terms);
  // Gives the bandits the rewards of the lanes among these tasks. `before`: the duration of the
  // best plan when the lanes began.
  void learn(const std::vector<Task>& tasks, Ticks before);

 private:
  // Whether the solver supports the problem itself, and whether it supports it in the given order.
  bool takes(const solve::Solver& solver) const;
  bool takes_given(const solve::Solver& solver) const;
  bool left_out(const solve::Solver* solver) const;

  const Problem& problem_;
  const Problem given_;  // problem_ in the given order
  solve::Context& context_;
  const bool has_time_limit_;
  const int threads_;
  const std::int64_t ops_;
  Epoch epoch_;
  Ticks last_duration_ = Ticks::max();
  std::int64_t longest_proof_ = 0;  // most work of a proof so far
  Choice recipe_choice_, order_choice_;
  // The solvers that support the problem itself, and those that support it in the given order.
  std::vector<const solve::Solver*> takers_, given_takers_;
  std::vector<const solve::Solver*> left_out_;
};

}  // namespace lowtide::driver
