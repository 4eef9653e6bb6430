// Runs rounds of solves on several threads; results are merged between the rounds.
#include "lowtide/driver/sweep.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <numeric>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/base/parallel.h"
#include "lowtide/driver/split_orders.h"
#include "lowtide/driver/transform_ideas.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"
#include "lowtide/solve/sequence/peak_floor.h"

namespace lowtide::driver {

namespace {

double ceil_div(std::size_t tasks, int threads) {
  const auto width = static_cast<std::size_t>(threads);
  const std::size_t rounds = (tasks + width - 1) / width;
  return static_cast<double>(rounds);
}

}  // namespace

struct Sweep::Job {
  SweepTask task;
  Request request;
  Allowance allowance;
  CancelToken* token = nullptr;
  Answer answer;
  std::vector<std::shared_ptr<const Plan>> starts;
  std::vector<Frontier::Entry> found;  // verified
  std::exception_ptr error;
  bool ran = false;
};

Sweep::Sweep(const solve::SolverTable& solvers, const Graph& graph, const Terms& terms,
             const FootprintTerms& footprint, SweepSettings settings)
    : solvers_(solvers),
      original_graph_(graph),
      allowed_(question_on(graph, Bytes::max(), terms).problem),
      graph_(allowed_.problem().graph),
      terms_(terms),
      footprint_(footprint),
      measure_(measure_of(graph_, footprint_, Bytes(0), settings.seed)),
      settings_(std::move(settings)),
      limits_(settings_.limits),
      fastest_(graph.least_time()) {
  settings_.threads = std::max(1, settings_.threads);
  const solve::Solver* asked = solvers.find(settings_.solver);
  const bool portfolio = asked != nullptr && asked->traits().has(solve::Trait::portfolio);
  const Question unlimited = question(Bytes::max());
  const Problem& problem = unlimited.problem;
  open_ = looks_for_transforms(solvers, settings_.solver, unlimited);
  require_plannable(problem);
  Plan own = plan_from_events(graph_, own_events(graph_), terms_.machine);
  const Verdict verdict = verify(unlimited, own);
  check(verdict.ok, "the plan of the graph's own order holds");
  known_.raise_floor(open_ ? always_live(problem) : solve::peak_floor(problem));
  known_.add(measured({verdict.cost, std::make_shared<const Plan>(std::move(own)), "given"}));
  if (open_) begin_from_substitutes();
  // If substitutions are looked for: they may make a faster graph.
  known_.raise_bound(Bytes::max(), fastest_);
  if (open_) begin_from_splits();
  if (!portfolio) return;
  const auto first = [&](solve::Trait trait) -> const solve::Solver* {
    for (const solve::Solver* part : solvers.with(trait))
      if (!part->traits().has(solve::Trait::external) && support_of(*part, problem).yes)
        return part;
    return nullptr;
  };
  const solve::Solver* improving = first(solve::Trait::anytime);
  const solve::Solver* proving = first(solve::Trait::proving);
  if (improving == nullptr || proving == nullptr) return;
  improving_ = improving->name();
  if (!open_) proving_ = proving->name();
}

Frontier::Entry Sweep::measured(Frontier::Entry entry) {
  if (!measure_) return entry;
  constexpr double kShare = 0.01;  // of the limits left
  Limits part(limits_.remaining(kShare));
  entry.taken = measure_(*entry.plan, part);
  limits_.spend(part.work());
  return entry;
}

Question Sweep::question(Bytes budget) const {
  Question asked = question_on(graph_, budget, terms_);
  asked.transform_cache = transform_cache_;
  return asked;
}

void Sweep::begin_from_substitutes() {
  const Question asked = question(Bytes::max());
  Limits part(limits_.remaining());
  const auto made = with_substitutes(asked, part, {}, rewrite::Taken::faster);
  limits_.spend(part.work());
  if (made->transforms.empty()) return;
  faster_ = made->transforms;
  Plan plan = own_order_plan(*made, terms_.machine);
  const Verdict verdict = verify(asked, plan);
  if (!verdict.ok) return;  // the plan exceeds the host budget
  fastest_ = std::min(fastest_, made->now.graph.least_time());
  known_.add(measured({verdict.cost, std::make_shared<const Plan>(std::move(plan)), "given"}));
}

void Sweep::begin_from_splits() {
  constexpr double kShare = 0.15;  // of a time limit
  const auto stops = [&] {
    return reason() != StopReason::finished ||
           (settings_.limits.seconds && seconds() > kShare * *settings_.limits.seconds);
  };
  for (Plan& plan : split_orders(question(Bytes::max()), stops)) {
    const Verdict verdict = verify(question(Bytes::max()), plan);
    if (!verdict.ok) continue;  // the plan exceeds the host budget
    known_.add(measured({verdict.cost, std::make_shared<const Plan>(std::move(plan)), "given"}));
  }
}

// Limits poll by the work done under them; here work is done elsewhere and charged afterwards.
StopReason Sweep::reason() const {
  if (settings_.limits.cancel && settings_.limits.cancel->cancelled()) return StopReason::cancelled;
  if (settings_.limits.work && limits_.work_left() <= 0) return StopReason::work_limit;
  if (limits_.over()) return StopReason::deadline;
  return StopReason::finished;
}

double Sweep::work_left() const {
  double left = std::numeric_limits<double>::infinity();
  if (settings_.limits.work) left = static_cast<double>(limits_.work_left());
  if (settings_.limits.seconds)
    left = std::min(left,
                    (*settings_.limits.seconds - seconds()) * settings_.threads * kWorkPerSecond);
  return std::max(0.0, left);
}

double Sweep::share(std::size_t tasks, const std::vector<std::size_t>& later) const {
  const auto size = [&](std::size_t count) {
    return by_clock() ? ceil_div(count, settings_.threads) : static_cast<double>(count);
  };
  const double all =
      std::accumulate(later.begin(), later.end(), size(tasks),
                      [&](double sum, std::size_t count) { return sum + size(count); });
  return all > 0 ? size(tasks) / all : 1;
}

Sweep::TriedKey Sweep::key(const SweepTask& task) {
  std::size_t list = 0;
  if (task.transforms && !task.transforms->empty()) {
    const auto found = std::ranges::find(transform_lists_, *task.transforms);
    list = 1 + static_cast<std::size_t>(found - transform_lists_.begin());
    if (found == transform_lists_.end()) transform_lists_.push_back(*task.transforms);
  }
  return {task.budget, task.solver.empty() ? settings_.solver : task.solver, list};
}

std::vector<Sweep::Job> Sweep::jobs_for(const std::vector<SweepTask>& tasks, double share) {
  std::vector<Job> jobs;
  double weights = 0;
  for (const SweepTask& task : tasks) {
    const Frontier::Entry* best = known_of(task).best(task.budget);
    if (known_.decided(task.budget) || (best && best->cost.duration <= task.enough)) continue;
    Job job;
    job.task = task;
    std::vector<std::pair<Bytes, Ticks>> starts;
    const auto start_from = [&](const Frontier::Entry* entry) {
      if (entry == nullptr) return;
      starts.emplace_back(entry->needs(), entry->cost.duration);
      job.starts.push_back(entry->plan);
    };
    start_from(best);
    start_from(known_of(task).above(task.budget));
    if (task.transforms && task.own == nullptr) {
      // Plans with other transforms belong to another problem.
      job.starts.clear();
      starts.clear();
      const Frontier::Entry *within = nullptr, *beyond = nullptr;
      for (const Frontier::Entry& entry : known_.entries()) {
        if (entry.plan->transforms != *task.transforms) continue;
        if (entry.needs() <= task.budget) within = &entry;
        if (entry.needs() > task.budget && beyond == nullptr) beyond = &entry;
      }
      start_from(within);
      start_from(beyond);
    }
    const std::string& solver = task.solver.empty() ? settings_.solver : task.solver;
    Tried& tried = tried_[key(task)];
    if (tried.to_the_end && tried.starts == starts) continue;
    tried.starts = std::move(starts);
    job.request.solver = solver;
    job.request.options = task.solver.empty() ? settings_.options : task.options;
    job.request.seed = settings_.seed + 0x9e3779b97f4a7c15u * solves_++;
    if (!open_) job.request.known = {known_.bound(task.budget), known_.floor()};
    weights += task.weight;
    jobs.push_back(std::move(job));
  }
  for (Job& job : jobs)
    job.request.threads = std::max(1, settings_.threads / static_cast<int>(jobs.size()));
  const LimitSettings left = limits_.remaining(share);
  if (left.work)
    for (Job& job : jobs)
      job.allowance.work =
          static_cast<std::int64_t>(static_cast<double>(*left.work) * (job.task.weight / weights));
  if (left.seconds) share_seconds(jobs, *left.seconds);
  return jobs;
}

// No job gets more than the round's limits: the excess of the heaviest goes to the others.
void Sweep::share_seconds(std::vector<Job>& jobs, double seconds) const {
  std::vector<Job*> heaviest;
  double weights = 0;
  for (Job& job : jobs) {
    heaviest.push_back(&job);
    weights += job.task.weight;
  }
  std::ranges::stable_sort(heaviest, std::greater(),
                           [](const Job* job) { return job->task.weight; });
  double all =
      seconds * static_cast<double>(jobs.size()) / ceil_div(jobs.size(), settings_.threads);
  for (Job* job : heaviest) {
    job->allowance.seconds = std::min(seconds, all * job->task.weight / weights);
    all -= job->allowance.seconds;
    weights -= job->task.weight;
  }
}

void Sweep::run(Job& job, const Wanted& wanted) const {
  // On large graphs even a solve without time takes long to begin.
  if (reason() != StopReason::finished) return;
  job.ran = true;
  Question asked = question(job.task.budget);
  if (job.task.transforms) {
    asked.transforms = *job.task.transforms;
    // An explicit empty list: no transforms are looked for either.
    if (asked.transforms.empty()) {
      Techniques& techniques = asked.problem.techniques;
      techniques.split = techniques.hoist = techniques.substitute = false;
    }
  }
  for (const auto& plan : job.starts) job.request.starts.push_back(*plan);
  job.request.limits.cancel = job.token;
  job.request.limits.interrupter = settings_.limits.interrupter;
  if (settings_.limits.seconds)
    job.request.limits.seconds =
        std::min(job.allowance.seconds, std::max(0.0, *settings_.limits.seconds - seconds()));
  if (settings_.limits.work) job.request.limits.work = job.allowance.work;
  try {
    if (measure_)
      run_measured(job, asked);
    else
      run_live(job, asked, wanted);
  } catch (...) {
    job.error = std::current_exception();
  }
  job.request.starts = {};
  job.request.watcher = {};
}

void Sweep::run_measured(Job& job, const Question& asked) const {
  FootprintAnswer found = solve_within(solvers_, asked, job.request, footprint_, job.task.enough);
  job.answer = std::move(found.answer);
  // Plans that take more than the budget are plans for larger budgets.
  Question unlimited = asked;
  unlimited.problem.budget = Bytes::max();
  for (const Frontier::Entry& entry : found.measured.entries())
    if (const Verdict verdict = verify(unlimited, *entry.plan);
        verdict.ok && verdict.cost == entry.cost)
      job.found.push_back(entry);
}

void Sweep::run_live(Job& job, const Question& asked, const Wanted& wanted) const {
  Frontier found;  // plans found on the way
  job.request.watcher = [&](const solve::Progress& progress) {
    if (progress.plan == nullptr) return;
    const Cost& cost = progress.cost;
    if (wanted && wanted(cost) && found.improves(cost) && known_.improves(cost)) {
      found.add({cost, std::make_shared<const Plan>(*progress.plan), std::string(progress.solver)});
      if (settings_.finds) settings_.finds(*progress.plan, cost, progress.solver);
    }
    if (cost.duration <= job.task.enough) job.token->cancel();
  };
  job.answer = solve(solvers_, asked, job.request);
  Outcome& outcome = job.answer.outcome;
  const bool has_plan = outcome.plan.has_value();
  if (has_plan)
    job.found.push_back(
        {outcome.cost, std::make_shared<const Plan>(std::move(*outcome.plan)), outcome.found_by});
  for (const Frontier::Entry& entry : found.entries()) {
    if (has_plan && entry.cost == outcome.cost) continue;  // the answer itself, which is verified
    if (const Verdict verdict = verify(asked, *entry.plan);
        verdict.ok && verdict.cost == entry.cost)
      job.found.push_back(entry);
  }
  // Plans over the budget are plans for larger budgets, and start plans for this one.
  for (std::optional<Plan>* beyond : {&job.answer.repair_start, &job.answer.smallest}) {
    if (!*beyond) continue;
    const Verdict verdict = verify(question(Bytes::max()), **beyond);
    if (verdict.ok && known_.improves(verdict.cost))
      job.found.push_back(
          {verdict.cost, std::make_shared<const Plan>(std::move(**beyond)), job.request.solver});
  }
}

void Sweep::run_all(std::vector<Job>& jobs, const Wanted& wanted) {
  // A task ends early when its plan is short enough, or at a cancel.
  std::deque<CancelToken> tokens;
  for (Job& job : jobs) job.token = &tokens.emplace_back(settings_.limits.cancel);
  // The longest first, so that no thread is left with a long one at the end.
  std::vector<std::size_t> turns(jobs.size());
  std::iota(turns.begin(), turns.end(), std::size_t{0});
  std::ranges::stable_sort(turns, std::greater(),
                           [&](std::size_t i) { return jobs[i].task.weight; });
  parallel_for(turns.size(), settings_.threads,
               [&](std::size_t turn) { run(jobs[turns[turn]], wanted); });
}

void Sweep::take(Job& job) {
  if (!job.ran) return;
  Tried& tried = tried_[key(job.task)];
  tried.note.clear();
  if (job.error) {
    try {
      std::rethrow_exception(job.error);
    } catch (const InputError&) {
      throw;
    } catch (const std::bad_alloc&) {
      tried.note = "there was not enough memory for this budget";
    } catch (const std::exception& error) {
      tried.note = error.what();
    }
    tried.to_the_end = true;
    if (!job.task.solver.empty()) say_failed(job.task.solver, tried.note);
    return;
  }
  const Outcome& outcome = job.answer.outcome;
  for (const PortfolioPart& part : outcome.parts)
    if (!part.failure.empty()) say_failed(part.name, part.failure);
  for (Frontier::Entry& entry : job.found) {
    if (job.task.own != nullptr) job.task.own->add(entry);
    known_.add(std::move(entry));
  }
  tried.note = job.answer.support.yes ? outcome.note : job.answer.support.reason;
  tried.to_the_end = by_itself(outcome.stopped_by);
  // A task that was cancelled alone had a plan that is short enough.
  if (!tried.to_the_end && outcome.stopped_by != StopReason::cancelled)
    cut_short_ = outcome.stopped_by;
  limits_.spend(job.answer.work);
  if (open_) return;  // bounds of one transformed graph do not hold for the others
  // A bound above a verified plan is an error of a solver, and must not spread.
  const Frontier::Entry* best = known_.best(job.task.budget);
  const Frontier::Entry* smallest = known_.smallest();
  if ((best && outcome.bound.duration > best->cost.duration) ||
      (smallest && outcome.bound.peak > smallest->cost.peak)) {
    tried.note = "solver " + job.request.solver + " claimed a bound above a plan that holds";
    return;
  }
  known_.raise_floor(outcome.bound.peak);
  if (outcome.status == Status::infeasible) return;
  known_.raise_bound(job.task.budget, outcome.bound.duration);
  if (!outcome.link_price) return;
  LinkPrice& price = link_prices_[job.task.budget];
  if (outcome.bound.duration >= price.bound) price = {outcome.bound.duration, *outcome.link_price};
}

void Sweep::say_failed(const std::string& part, const std::string& why) {
  add_parts(failed_, {PortfolioPart{.name = part, .failure = why}});
}

bool Sweep::round(const std::vector<SweepTask>& tasks, double share, const Wanted& wanted) {
  if (reason() != StopReason::finished) return false;
  std::vector<Job> jobs = jobs_for(tasks, share);
  cut_short_ = StopReason::finished;
  if (jobs.empty()) return false;
  run_all(jobs, wanted);
  for (Job& job : jobs) take(job);
  return true;
}

// The bound of a larger budget holds for this one too.
std::optional<double> Sweep::link_price(Bytes budget) const {
  const LinkPrice* highest = nullptr;
  for (auto at = link_prices_.lower_bound(budget); at != link_prices_.end(); ++at)
    if (highest == nullptr || at->second.bound > highest->bound) highest = &at->second;
  return highest == nullptr ? std::nullopt : std::optional(highest->price);
}

void Sweep::verify_on_original(const Frontier::Entry& entry) const {
  const bool is_allowed_graph = &graph_ == &original_graph_;
  if ((entry.plan->transforms.empty() && is_allowed_graph) || verified_.contains(entry.plan))
    return;
  const Verdict verdict =
      verify(question_on(original_graph_, entry.cost.peak, terms_), *entry.plan);
  if (!verdict.ok || verdict.cost != entry.cost)
    throw InternalError("solver " + entry.found_by + ": its plan does not verify" +
                        (verdict.ok ? "" : ": " + verdict.violation->reason));
  verified_.insert(entry.plan);
}

TradeoffPoint Sweep::point(Bytes budget) const {
  TradeoffPoint point{.budget = budget, .outcome = {}};
  Outcome& outcome = point.outcome;
  // Parts may take less time than the whole, so not even the base duration is a bound for plans
  // with transforms.
  outcome.bound = {open_ ? Ticks(0) : known_.bound(budget), known_.floor()};
  if (const Frontier::Entry* smallest = known_.smallest()) {
    outcome.smallest_peak = smallest->cost.peak;
    outcome.cost = smallest->cost;
  }
  if (const Frontier::Entry* best = known_.best(budget)) {
    verify_on_original(*best);
    outcome.plan = *best->plan;
    outcome.cost = best->cost;
    outcome.found_by = best->found_by;
    point.taken = best->taken;
    outcome.status =
        best->cost.duration <= outcome.bound.duration ? Status::optimal : Status::feasible;
  } else {
    outcome.status = budget < known_.floor() ? Status::infeasible : Status::unknown;
  }
  outcome.stopped_by = known_.decided(budget) ? StopReason::finished : stopped_by();
  if (outcome.status == Status::unknown && outcome.stopped_by == StopReason::finished)
    outcome.stopped_by = StopReason::gave_up;
  if (const auto tried = tried_.find({budget, settings_.solver, 0});
      tried != tried_.end() && !outcome.plan)
    outcome.note = tried->second.note;
  add_note(outcome, failures_text(failed_));
  if (outcome.status != Status::infeasible) outcome.link_price = link_price(budget);
  // A plan as short as the sum of its ops is not limited by the link.
  if (terms_.machine && outcome.plan && outcome.cost.duration <= graph_.least_time())
    outcome.link_price = 0;
  return point;
}

}  // namespace lowtide::driver
