#include "lowtide/driver/auto/runner.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "lowtide/base/parallel.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::driver {

namespace {

using solve::Trait;
using solve::Traits;

constexpr std::uint64_t kUnlimitedEpochs = 4;  // without any limit
constexpr std::uint64_t kFirstProof = 3;       // epoch: the search goes first, proofs take longer
constexpr double kProofShare = 0.4;            // of the limits, if that comes first
constexpr std::int64_t kBriefWork = 200;       // of a lane, for each op: too little to cool down
constexpr int kMostFailedLanes = 3;            // one may have drawn an unlucky seed
constexpr double kLookShare = 0.2;             // of the time left, to find an engine
constexpr std::int64_t kMostWork = std::int64_t{1} << 40;  // of a task

Problem in_given_order(Problem problem) {
  problem.order = Order::given;
  return problem;
}

}  // namespace

Runner::Runner(const Problem& problem, solve::Context& context, AutoSettings settings)
    : problem_(problem),
      given_(in_given_order(problem)),
      context_(context),
      settings_(std::move(settings)),
      clocked_(context.limits().settings().seconds.has_value()),
      threads_(std::max(1, context.threads())),
      ops_(static_cast<std::int64_t>(problem.graph.op_count())),
      recipe_choice_(settings_.recipe_weights),
      order_choice_(settings_.order_weights) {}

void Runner::run() {
  // Where all is known beforehand the solvers would return at once, with nothing.
  if (context_.done() && !context_.smallest()) context_.offer_events(own_events(problem_.graph));
  for (std::size_t i = 0; i < phases().size(); ++i) {
    const Phase& phase = phases()[i];
    const double share = settings_.phase_shares[i];
    if (phase.when != When::once || share == 0 || stop() || !phase.due(*this)) continue;
    for (Task& task : phase.tasks(*this, share)) {
      if (stop() || !phase.due(*this)) break;
      std::vector<Task> alone;
      alone.push_back(std::move(task));
      run(alone);
    }
  }
  epoch_.slice = unlimited() ? 200 + 20 * static_cast<std::int64_t>(problem_.graph.link_count())
                             : 20'000 + 4 * ops_;
  for (; run_epoch(); ++epoch_.number) epoch_.slice = std::min(2 * epoch_.slice, kMostWork);
}

bool Runner::run_epoch() {
  if (stop() || (unlimited() && epoch_.number == kUnlimitedEpochs)) return false;
  epoch_.proves = epoch_.number >= kFirstProof || context_.limits().used() > kProofShare ||
                  !context_.has_plan();
  epoch_.stands = best_duration() == std::exchange(last_duration_, best_duration());
  const std::int64_t before = context_.limits().work();
  std::vector<Task> engines = tasks_of(When::alone);
  run(engines);
  if (stop()) return false;
  std::vector<Task> tasks = tasks_of(When::before_search);
  bool any = !tasks.empty();
  if (!clocked_ || threads_ == 1) {
    run(tasks);
    if (stop()) return false;
    tasks.clear();
  }
  std::ranges::move(tasks_of(When::search), std::back_inserter(tasks));
  any = any || !tasks.empty();
  run(tasks);
  recipe_choice_.age();
  order_choice_.age();
  // Whoever did nothing now may do something in a longer epoch; but no limit is waited for in vain.
  if (context_.limits().work() == before) context_.limits().spend(Limits::kPollWork);
  return any || first(Trait::proving) != nullptr;
}

std::vector<Task> Runner::tasks_of(When when) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < phases().size(); ++i) {
    const Phase& phase = phases()[i];
    const double share = settings_.phase_shares[i];
    if (phase.when == when && share > 0 && phase.due(*this))
      std::ranges::move(phase.tasks(*this, share), std::back_inserter(tasks));
  }
  return tasks;
}

LaneTerms Runner::lane_terms() const {
  LaneTerms terms{.brief = epoch_.slice < kBriefWork * ops_,
                  .link = problem_.machine.has_value(),
                  .has_plan = context_.has_plan(),
                  .free_order = problem_.order == Order::free};
  terms.reordered =
      terms.free_order && terms.has_plan &&
      !solve::follows_order(problem_.graph, computations(context_.best()));
  if (terms.link || !terms.has_plan) return terms;
  const auto repeats = static_cast<std::int64_t>(computations(context_.best()).size()) - ops_;
  const Ticks time = problem_.graph.total_time();
  if (repeats <= 0 || time == Ticks(0)) return terms;
  const Ticks excess = context_.best_cost().duration - context_.bound().duration;
  terms.excess = static_cast<double>(excess.count()) / static_cast<double>(time.count()) *
                 static_cast<double>(ops_) / static_cast<double>(repeats);
  return terms;
}

bool Runner::takes(const solve::Solver& solver, const Problem& problem) const {
  return support_of(solver, problem).yes;
}

bool Runner::left_out(const solve::Solver* solver) const {
  return std::ranges::find(left_out_, solver) != left_out_.end();
}

std::vector<const solve::Solver*> Runner::solvers(Trait trait) const {
  if (context_.solvers() == nullptr) return {};
  std::vector<const solve::Solver*> found = context_.solvers()->with(trait);
  std::erase_if(found, [&](const solve::Solver* solver) {
    return solver->traits().has(Trait::external) || left_out(solver) || !takes(*solver, problem_);
  });
  return found;
}

const solve::Solver* Runner::first(Trait trait) const {
  for (const solve::Solver* solver : solvers(trait))
    if (!solver->traits().has(Trait::guest)) return solver;
  return nullptr;
}

std::vector<const solve::Solver*> Runner::guests() const {
  std::vector<const solve::Solver*> found = solvers(Trait::guest);
  std::erase_if(found, [](const solve::Solver* solver) {
    Traits purposes = solver->traits();
    purposes.remove(Trait::guest);
    purposes.remove(Trait::transfers);
    return purposes.empty();
  });
  return found;
}

// An engine that is slow to be found must not cost the others their time.
const solve::Solver* Runner::engine() const {
  const double most = context_.limits().seconds() +
                      context_.limits().remaining(kLookShare).seconds.value_or(0);
  const auto stops = [&] {
    return context_.limits().over() || context_.limits().seconds() > most;
  };
  if (context_.solvers() == nullptr) return nullptr;
  for (const solve::Solver* solver : context_.solvers()->with(Trait::proving)) {
    const Traits traits = solver->traits();
    if (traits.has(Trait::external) && !traits.has(Trait::guest) && !left_out(solver) &&
        takes(*solver, problem_))
      return solver->missing(stops).empty() ? solver : nullptr;
  }
  return nullptr;
}

Task Runner::task(const solve::Solver* solver, std::int64_t work, double share) const {
  return {.solver = solver,
          .work = std::min(work, context_.limits().remaining(share).work.value_or(work)),
          .share = share,
          .seed = context_.seed(),
          .in_given_order = problem_.order == Order::free && takes(*solver, given_)};
}

std::vector<Task> Runner::proof(std::int64_t work) {
  work = std::min(work, context_.limits().remaining().work.value_or(work));
  if (work < 2 * longest_proof_) return {};
  longest_proof_ = work;
  std::vector<Task> tasks{task(first(Trait::proving), work, 1)};
  tasks.front().in_given_order = false;
  return tasks;
}

// Lanes differ in their random numbers and in their recipes.
Task Runner::lane(int number) {
  const LaneTerms terms = lane_terms();
  const LaneChoice choice{
      .recipe = recipe_choice_.next([&](std::size_t i) { return recipes()[i].suits(terms); }),
      .order = order_choice_.next([&](std::size_t i) { return order_recipes()[i].suits(terms); })};
  Task lane{.solver = first(Trait::anytime),
            .work = epoch_.slice,
            .seed = Random(context_.seed() * 0x9e3779b97f4a7c15u + epoch_.number * 1024 +
                           static_cast<std::uint64_t>(number))
                        .next(),
            .repeats = true,
            .lane = choice};
  if (choice.recipe != Choice::npos) lane.options = texts_of(recipes()[choice.recipe], terms);
  if (choice.order != Choice::npos)
    std::ranges::move(texts_of(order_recipes()[choice.order]), std::back_inserter(lane.options));
  return lane;
}

// Even a hopeless budget gets an answer with the smallest peak seen.
bool Runner::stop() {
  // A task that begins after the deadline or a cancel does no work, and both are seen as work is
  // done.
  context_.limits().spend(context_.limits().over() ? Limits::kPollWork : 0);
  return context_.done() && context_.smallest().has_value();
}

// The best plan, then the caller's, whose first one it has replaced, then one over the budget that
// a proof has left, once the search has had its turn without.
std::vector<Plan> Runner::start_plans() const {
  std::vector<Plan> plans(context_.starts().begin(), context_.starts().end());
  if (const auto& smallest = context_.smallest(); context_.has_plan() || smallest) {
    if (plans.empty()) plans.emplace_back();
    plans.front() = context_.has_plan() ? context_.best() : *smallest;
  }
  if (epoch_.proves && context_.repair_start()) plans.push_back(*context_.repair_start());
  return plans;
}

// As many tasks as can be get all that they ask for: short lanes come to nothing, and a run with
// less work then has begun with what one with more does.
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
  const Ticks before = best_duration();
  const LimitSettings limits = context_.limits().remaining();
  const std::vector<Plan> starts = start_plans();
  const Bound known = context_.own_bound();
  parallel_for(tasks.size(), threads_,
               [&](std::size_t i) { run_task(tasks[i], limits, known, starts); });
  for (Task& task : tasks) merge(task);
  learn(tasks, before);
}

// What a lane won, against the lane beside it that won most.
void Runner::learn(const std::vector<Task>& tasks, Ticks before) {
  const auto won = [&](const Task& task) {
    if (!task.lane || !task.outcome || !task.outcome->plan) return 0.0;
    if (before == Ticks::max()) return 1.0;
    return static_cast<double>(
        std::max(Ticks(0), before - task.outcome->cost.duration).count());
  };
  double most = 0;
  for (const Task& task : tasks) most = std::max(most, won(task));
  if (most == 0) return;
  for (const Task& task : tasks) {
    if (!task.lane || !task.outcome) continue;
    const auto [recipe, order] = *task.lane;
    if (recipe != Choice::npos) recipe_choice_.learn(recipe, won(task) / most);
    if (order != Choice::npos) order_choice_.learn(order, won(task) / most);
  }
}

void Runner::merge(Task& task) {
  context_.limits().spend(task.work_done);
  PortfolioPart& part = context_.part(task.solver->name());
  part.seconds += task.seconds;
  part.work += task.work_done;
  if (!task.failure.empty()) {
    if (part.failure.empty()) part.failure = task.failure;
    if (!task.repeats || ++failed_lanes_ == kMostFailedLanes) left_out_.push_back(task.solver);
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
    left_out_.push_back(task.solver);
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
  // What is no longer believed lowers it.
  context_.part(solver.name()).bound += std::max(Ticks(), context_.bound().duration - before);
}

}  // namespace lowtide::driver
