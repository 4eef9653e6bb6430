// What `auto` knows while it runs: what its phases ask, and make tasks with.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lowtide/driver/auto/choice.h"
#include "lowtide/driver/auto/task.h"
#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

// What the options of `auto` say, by the places in the tables; 0: switched off.
struct AutoSettings {
  std::vector<double> phase_shares, recipe_weights, order_weights;
};

// One epoch. Each is twice as long as the one before.
struct Epoch {
  std::uint64_t number = 0;
  std::int64_t slice = 0;  // work of a lane
  // Proofs are due: late enough, or there is no plan for the search to begin from; with a link at
  // once, since the first bounds leave it out.
  bool proves = false;
  bool stands = false;  // the epoch before found no better plan
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
  // Whether seconds limit the run.
  bool clocked() const { return clocked_; }
  bool unlimited() const { return !clocked_ && !context_.limits().settings().work; }
  int threads() const { return threads_; }

  const Epoch& epoch() const { return epoch_; }
  void begin_epoch();
  void end_epoch();
  // The terms of a lane in this epoch.
  LaneTerms lane_terms() const;

  // The solvers that take the problem, or the same in the given order, and have the trait, in the
  // order of the table, without external engines and those that were left out.
  std::vector<const solve::Solver*> solvers(solve::Trait trait) const;
  // The first of them that is no guest; null if there is none.
  const solve::Solver* first(solve::Trait trait) const;
  // Solvers that the user has registered for some purpose.
  std::vector<const solve::Solver*> guests() const;
  // An engine that proves, if it is found on this machine within a share of the time left; null
  // otherwise, and from then on.
  const solve::Solver* engine();
  // From now on nobody is offered that solver: it has finished, or failed.
  void leave_out(const solve::Solver* solver) { left_out_.push_back(solver); }

  // A task for a share of what is left: of the problem as it is, where the solver takes that.
  Task task(const solve::Solver* solver, std::int64_t work, double share) const;
  // The same, in the given order where the solver takes that: there is less to choose.
  Task task_in_given_order(const solve::Solver* solver, std::int64_t work, double share) const;
  // Of the bounds. None where it gets less than twice the work of the one before: each begins
  // anew, and would only find the same.
  std::vector<Task> proof(std::int64_t work);
  // Of the search, with recipes of the bandits' choice. Lanes of an epoch differ in `number`.
  Task lane(int number, const LaneTerms& terms);
  // Tells the bandits what the lanes among these have won, which began when the best plan had the
  // duration `before`.
  void learn(const std::vector<Task>& tasks, Ticks before);

 private:
  // Whether the solver takes the problem as it is, and whether in the given order.
  bool takes(const solve::Solver& solver) const;
  bool takes_given(const solve::Solver& solver) const;
  bool left_out(const solve::Solver* solver) const;

  const Problem& problem_;
  const Problem given_;  // the same in the given order
  solve::Context& context_;
  const bool clocked_;
  const int threads_;
  const std::int64_t ops_;
  Epoch epoch_;
  Ticks last_duration_ = Ticks::max();
  std::int64_t longest_proof_ = 0;  // work
  Choice recipe_choice_, order_choice_;
  // Of all solvers, those that take the problem as it is, and those that take it in the given
  // order.
  std::vector<const solve::Solver*> takers_, given_takers_;
  std::vector<const solve::Solver*> left_out_;
};

}  // namespace lowtide::driver
