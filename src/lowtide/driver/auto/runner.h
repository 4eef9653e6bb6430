// Runs the phases of `auto`: shares out the limits, gives each task its start plans, and merges
// what it finds. Private to the room.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "lowtide/driver/auto/choice.h"
#include "lowtide/driver/auto/phases.h"
#include "lowtide/driver/auto/task.h"
#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

// What the options of `auto` say, by the places in the tables.
struct AutoSettings {
  std::vector<double> phase_shares, recipe_weights, order_weights;  // 0: switched off
};

// One epoch. Each is twice as long as the one before.
struct Epoch {
  std::uint64_t number = 0;
  std::int64_t slice = 0;  // work of a lane
  // Proofs are due: late enough, or there is no plan for the search to begin from.
  bool proves = false;
  bool stands = false;  // the epoch before found no better plan
};

class Runner {
 public:
  Runner(const Problem& problem, solve::Context& context, AutoSettings settings);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // The phases that come once, then epochs until there is nothing more to do: what can be proven
  // is, or a limit is reached.
  void run();

  // What phases ask.
  const Problem& problem() const { return problem_; }
  const solve::Context& context() const { return context_; }
  const Epoch& epoch() const { return epoch_; }
  std::int64_t ops() const { return ops_; }
  bool has_plan() const { return context_.has_plan(); }
  bool clocked() const { return clocked_; }
  int threads() const { return threads_; }
  LaneTerms lane_terms() const;
  // The solvers that take the problem and have the trait, in the order of the table, without those
  // that have finished or failed. Guests and external engines only where asked for.
  std::vector<const solve::Solver*> solvers(solve::Trait trait) const;
  const solve::Solver* first(solve::Trait trait) const;  // null if there is none
  std::vector<const solve::Solver*> guests() const;
  // An engine that proves and that is found on this machine within a share of the time left.
  const solve::Solver* engine() const;

  // What phases make tasks with. In the given order where the solver takes that.
  Task task(const solve::Solver* solver, std::int64_t work, double share) const;
  // Of the bounds. None where it gets less than twice the work of the one before: each begins
  // anew, and would only find the same.
  std::vector<Task> proof(std::int64_t work);
  Task lane(int number);

 private:
  bool stop();
  void begin_epochs();
  bool run_epoch();
  std::vector<Task> tasks_of(When when);
  void run(std::vector<Task>& tasks);
  std::vector<Plan> start_plans() const;
  void fit_to_limits(std::vector<Task>& tasks) const;
  void run_task(Task& task, LimitSettings limits, const Bound& known, std::vector<Plan> starts);
  void solve_or_say_why(Task& task, const Problem& problem, solve::Context& inner) const;
  void merge(Task& task);
  void learn(const std::vector<Task>& tasks, Ticks before);
  void offer(const Plan& plan, const Cost& cost, const solve::Solver& solver);
  void raise(const solve::Solver& solver, Ticks bound);
  bool takes(const solve::Solver& solver, const Problem& problem) const;
  bool left_out(const solve::Solver* solver) const;
  bool unlimited() const { return !clocked_ && !context_.limits().settings().work; }
  Ticks best_duration() const {
    return context_.has_plan() ? context_.best_cost().duration : Ticks::max();
  }

  const Problem& problem_;
  const Problem given_;  // the same in the given order
  solve::Context& context_;
  const AutoSettings settings_;
  const bool clocked_;
  const int threads_;
  const std::int64_t ops_;
  Epoch epoch_;
  Ticks last_duration_ = Ticks::max();
  std::int64_t longest_proof_ = 0;  // work
  Choice recipe_choice_, order_choice_;
  std::vector<const solve::Solver*> left_out_;  // finished, or failed
  std::mutex mutex_;                            // of context_, while tasks run
  int failed_lanes_ = 0;
  // Whoever watches has thrown, and that is no failure of a solver.
  std::atomic<bool> watcher_threw_ = false;
};

}  // namespace lowtide::driver
