// Runs the phases of `auto`: divides the limits among the tasks, gives each task its start plans,
// and merges its plans and bounds.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "lowtide/driver/auto/phases.h"
#include "lowtide/driver/auto/state.h"
#include "lowtide/driver/auto/task.h"

namespace lowtide::driver {

class Runner {
 public:
  Runner(const Problem& problem, solve::Context& context, AutoSettings settings)
      : settings_(std::move(settings)), context_(context), state_(problem, context, settings_) {}

  // Runs the phases that come once, then epochs until a plan is proven optimal, the budget is
  // proven infeasible, or a limit is reached.
  void run();

 private:
  // Whether the run is over: optimal, infeasible, or at a limit.
  bool stop();
  // Returns whether another epoch may find anything.
  bool run_epoch();
  // The tasks of the phases that are due.
  std::vector<Task> tasks_of(When when);
  void run(std::vector<Task>& tasks);
  std::vector<Plan> start_plans() const;
  void fit_to_limits(std::vector<Task>& tasks) const;
  void run_task(Task& task, LimitSettings limits, const Bound& known, std::vector<Plan> starts);
  void solve_or_say_why(Task& task, const Problem& problem, solve::Context& inner) const;
  void merge(Task& task);
  void offer(const Plan& plan, const Cost& cost, const solve::Solver& solver);
  void raise(const solve::Solver& solver, Ticks bound);

  const AutoSettings settings_;
  solve::Context& context_;
  AutoState state_;
  std::mutex mutex_;  // guards context_ while tasks run
  int failed_lanes_ = 0;
  // The caller's watcher has thrown: the exception is no failure of a solver.
  std::atomic<bool> watcher_threw_ = false;
};

}  // namespace lowtide::driver
