// Runs one task, on any thread: makes the context of its solver, and catches what the solver
// throws. With a time limit the plans of a task are offered while it runs. Otherwise Runner::merge
// offers them when all tasks have ended, in the order of the tasks, so that threads change nothing.
#include <algorithm>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/driver/auto/runner.h"

namespace lowtide::driver {

namespace {

// The last line of a message. If a registered solver throws, the message is a Python traceback, and
// its last line says what went wrong.
std::string last_line(std::string_view what) {
  what = what.substr(0, what.find_last_not_of(" \n") + 1);
  what = what.substr(what.find_last_of('\n') + 1);
  return what.empty() ? "it did not say why" : std::string(what);
}

}  // namespace

void Runner::run_task(Task& task, LimitSettings limits, const Bound& known,
                      std::vector<Plan> starts) {
  if (limits.seconds)
    limits.seconds = context_.limits().remaining().seconds.value_or(0) * task.share;
  {
    // A solver that begins after the deadline notices it only after its first plan. So do not call
    // the solver, unless the run has no plan at all.
    const std::scoped_lock lock(mutex_);
    if (context_.limits().over() && context_.smallest()) return;
  }
  limits.work = task.work;
  Problem problem = state_.problem_of(task);
  if (task.without_link) problem.machine.reset();
  solve::ContextSettings settings{.limits = limits,
                                  .seed = task.seed,
                                  .threads = task.threads,
                                  .options = solve::Options(task.solver->options()),
                                  .starts = std::move(starts),
                                  .known = known,
                                  .solvers = context_.solvers(),
                                  .watcher = {}};
  for (const auto& [name, value] : task.options) settings.options.set(name, value);
  if (state_.has_time_limit())
    settings.watcher = [&](const solve::Progress& progress) {
      const std::scoped_lock lock(mutex_);
      try {
        if (progress.plan != nullptr && !task.without_link)
          offer(*progress.plan, progress.cost, *task.solver);
        if (task.proves()) raise(*task.solver, progress.bound.duration);
      } catch (...) {
        watcher_threw_ = true;
        throw;
      }
    };
  solve::Context inner(problem, task.solver->name(), std::move(settings));
  solve_or_say_why(task, problem, inner);
  task.work_done = inner.limits().work();
  task.seconds = inner.limits().seconds();
  task.smallest = inner.smallest();
  if (!task.repeats) task.repair_start = inner.repair_start();
  if (task.without_link)
    for (auto* plan : {&task.outcome->plan, &task.smallest, &task.repair_start})
      if (*plan) (*plan)->machine = state_.problem().machine;
}

// A solver that throws keeps the plans that it has offered.
void Runner::solve_or_say_why(Task& task, const Problem& problem, solve::Context& inner) const {
  try {
    task.outcome = task.solver->solve(problem, inner);
    return;
  } catch (const std::bad_alloc&) {
    if (watcher_threw_) throw;
    task.failure = "there was not enough memory";
  } catch (const std::exception& error) {
    if (watcher_threw_ || is_checked_fault(error)) throw;
    task.failure = last_line(error.what());
  }
  // Its plans were simulated when it offered them, but nothing has checked its bounds.
  task.outcome = inner.finish();
  task.outcome->bound = {};
}

}  // namespace lowtide::driver
