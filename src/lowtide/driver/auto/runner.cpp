#include "lowtide/driver/auto/runner.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "lowtide/base/parallel.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::driver {

namespace {

using solve::Trait;
using solve::Traits;

constexpr std::uint64_t kUnlimitedEpochs = 4;  // without any limit
constexpr int kMostFailedLanes = 3;            // more than one: a failure may depend on the seed

}  // namespace

void Runner::run() {
  for (std::size_t i = 0; i < phases().size(); ++i) {
    const Phase& phase = phases()[i];
    const double share = settings_.phase_shares[i];
    if (phase.when != When::once || share == 0 || stop() || !phase.due(state_)) continue;
    for (Task& task : phase.tasks(state_, share)) {
      if (stop() || !phase.due(state_)) break;
      std::vector<Task> alone;
      alone.push_back(std::move(task));
      run(alone);
    }
  }
  while (run_epoch()) state_.end_epoch();
  // Offer the unplanned step, so that even an infeasible budget has an outcome with a smallest
  // peak.
  if (!context_.smallest()) context_.offer_events(own_events(state_.problem().graph));
}

bool Runner::run_epoch() {
  if (stop() || (state_.unlimited() && state_.epoch().number == kUnlimitedEpochs)) return false;
  state_.begin_epoch();
  const std::int64_t before = context_.limits().work();
  std::vector<Task> engines = tasks_of(When::alone);
  run(engines);
  if (stop()) return false;
  std::vector<Task> tasks = tasks_of(When::before_search);
  bool any = !tasks.empty();
  if (!state_.has_time_limit() || state_.threads() == 1) {
    run(tasks);
    if (stop()) return false;
    tasks.clear();
  }
  std::ranges::move(tasks_of(When::search), std::back_inserter(tasks));
  any = any || !tasks.empty();
  run(tasks);
  // An epoch without any task still spends work, so that the run reaches its work limit. As long as
  // some solver proves bounds, a later, longer epoch may have a task for it.
  if (context_.limits().work() == before) context_.limits().spend(Limits::kPollWork);
  return any || state_.first(Trait::proving) != nullptr;
}

std::vector<Task> Runner::tasks_of(When when) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < phases().size(); ++i) {
    const Phase& phase = phases()[i];
    const double share = settings_.phase_shares[i];
    if (phase.when == when && share > 0 && phase.due(state_))
      std::ranges::move(phase.tasks(state_, share), std::back_inserter(tasks));
  }
  return tasks;
}

bool Runner::stop() {
  // Limits::spend polls the deadline and the cancellation. A task that begins after the deadline
  // does no work, and so would never poll. Hence spend some here.
  context_.limits().spend(context_.limits().over() ? Limits::kPollWork : 0);
  return context_.done();
}

// The best plan in place of the caller's first start plan, then the caller's other start plans.
// Once proofs have begun, also the context's repair start: a plan over the budget, but shorter than
// the best plan. The proofs make such plans from minimum cuts.
std::vector<Plan> Runner::start_plans() const {
  std::vector<Plan> plans(context_.starts().begin(), context_.starts().end());
  if (const auto& smallest = context_.smallest(); context_.has_plan() || smallest) {
    if (plans.empty()) plans.emplace_back();
    plans.front() = context_.has_plan() ? context_.best() : *smallest;
  }
  if (state_.epoch().proves && context_.repair_start()) plans.push_back(*context_.repair_start());
  return plans;
}

// As many tasks as possible get all the work that they ask for, since short lanes win nothing. So a
// run with a smaller work limit is nearly a prefix of one with a larger limit.
void Runner::fit_to_limits(std::vector<Task>& tasks) const {
  const auto left = context_.limits().remaining().work;
  if (!left) return;
  std::int64_t rest = std::max<std::int64_t>(1, *left);
  std::erase_if(tasks, [&](Task& task) {
    task.work = std::min(task.work, rest);
    rest -= task.work;
    return task.work <= 0;
  });
}

void Runner::run(std::vector<Task>& tasks) {
  fit_to_limits(tasks);
  for (const Task& task : tasks) context_.part(task.solver->name());
  const Ticks before = state_.best_duration();
  const LimitSettings limits = context_.limits().remaining();
  const std::vector<Plan> starts = start_plans();
  const Bound known = context_.own_bound();
  parallel_for(tasks.size(), state_.threads(),
               [&](std::size_t i) { run_task(tasks[i], limits, known, starts); });
  for (Task& task : tasks) merge(task);
  state_.learn(tasks, before);
}

void Runner::merge(Task& task) {
  context_.limits().spend(task.work_done);
  PortfolioPart& part = context_.part(task.solver->name());
  part.seconds += task.seconds;
  part.work += task.work_done;
  if (!task.failure.empty()) {
    if (part.failure.empty()) part.failure = task.failure;
    if (!task.repeats || ++failed_lanes_ == kMostFailedLanes) state_.leave_out(task.solver);
  }
  if (!task.outcome) return;
  const Outcome& outcome = *task.outcome;
  if (task.proves()) {
    if (outcome.link_price && outcome.bound.duration >= context_.bound().duration)
      context_.tell_link_price(*outcome.link_price);
    raise(*task.solver, outcome.bound.duration);
    context_.raise_floor(outcome.bound.peak);
  }
  if (outcome.plan) offer(*outcome.plan, outcome.cost, *task.solver);
  if (task.smallest &&
      (!context_.smallest_peak() || *outcome.smallest_peak < *context_.smallest_peak()))
    context_.offer(*task.smallest, task.solver->name());
  if (task.repair_start) context_.offer(*task.repair_start, task.solver->name());
  if (task.once || (!task.repeats && !task.without_link && by_itself(outcome.stopped_by)))
    state_.leave_out(task.solver);
}

void Runner::offer(const Plan& plan, const Cost& cost, const solve::Solver& solver) {
  if (context_.has_plan() && std::tie(cost.duration, cost.peak) >=
                                 std::tie(context_.best_cost().duration, context_.best_cost().peak))
    return;
  context_.offer(plan, solver.name());
}

void Runner::raise(const solve::Solver& solver, Ticks bound) {
  const Traits traits = solver.traits();
  const Ticks before = context_.bound().duration;
  traits.has(Trait::external) || traits.has(Trait::guest) ? context_.raise_engine_bound(bound)
                                                          : context_.raise_bound(bound);
  // The bound falls if a verified plan is shorter than the bound that an engine has claimed.
  context_.part(solver.name()).bound += std::max(Ticks(), context_.bound().duration - before);
}

}  // namespace lowtide::driver
