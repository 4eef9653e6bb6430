// Problem: find the smallest budget for which some plan takes no longer than a given time.
//
// Idea: solvers minimise time within a budget, and the time falls as the budget rises. So search
// over budgets. Try several evenly spaced ones at a time; each solve ends as soon as its plan is
// short enough. Continue between the largest budget without such a plan and the least that one
// needs. A plan often needs much less than its budget, and the next round then begins there. When
// the interval is narrow, spend the remaining limits just below its upper end, where more search
// may find a little less memory, and further down, where bounds may prove that nothing exists.
//
// Before that, the original graph goes down in steps, each from the plan before (fit_race.cpp). If
// transforms are looked for, their choice matters as much as the budget; then that is all.
//
// A solver that minimises live bytes within a time limit itself is called once, if they are what
// counts.
//
// Invariant: the answer is the plan that needs least of all that any solve has found within the
// time limit, and below the floor it is proven that there is none.
//
// Loses: if plans for middling budgets come late. A budget that was given up too early is tried
// again only when the search ends near it.
#include "lowtide/driver/fit.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/driver/fit_race.h"
#include "lowtide/driver/least_solve.h"
#include "lowtide/driver/sweep.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/peak_floor.h"

namespace lowtide::driver {

namespace {

constexpr double kRaceShare = 0.4;  // of the limits, if there is something to prove afterwards
constexpr std::int64_t kFirstProbes = 8, kProbes = 4;
constexpr int kFirstSteps = 4, kSteps = 8;   // rounds that narrow the interval; later rounds
constexpr std::int64_t kManySolves = 1'000;  // more than any round has
constexpr double kNarrow = 0.001;            // of the baseline peak
constexpr double kFirstShare = 0.2;          // of the limits, if the given order takes too long
constexpr double kLinkShare = 0.1;           // of the remaining limits

class FitRun {
 public:
  FitRun(const solve::SolverTable& solvers, const Graph& graph, const FitRequest& request)
      : request_(request),
        own_peak_(own_peak(graph)),
        ops_(static_cast<double>(graph.op_count())),
        sweep_(solvers, graph, request.terms, request.footprint, request.settings) {}

  Fit run() {
    // The unplanned step takes too long only if it waits for tensors at home on the host. With
    // memory for all of them they can be fetched early.
    if (smallest() == nullptr) round({own_peak_}, kFirstShare);
    if (smallest() != nullptr) {
      report();
      if (sweep_.open() || sweep_.by_parts()) race_or_say_why();
      if (!sweep_.open()) {
        // The bounds give the price of the link, for a budget that is no smaller than the answer's.
        if (request_.terms.machine) round({upper()}, kLinkShare);
        narrow();
        push();
      }
    }
    return result();
  }

 private:
  Fit result() const {
    Fit fit;
    fit.terms = request_.terms;
    fit.footprint = request_.footprint.kind;
    if (request_.footprint.kind == Footprint::reserved)
      fit.allocator = layout::to_string(request_.footprint.allocator);
    fit.own_peak = own_peak_;
    fit.time_limit = request_.time_limit;
    fit.floor = floor();
    fit.stopped_by = sweep_.stopped_by();
    if (const Frontier::Entry* found = smallest()) fit.point = sweep_.point(found->needs());
    if (fit.stopped_by == StopReason::finished && !fit.proven())
      fit.stopped_by = StopReason::gave_up;
    return fit;
  }
  void report() const {
    if (request_.watcher) request_.watcher({floor(), upper(), [this] { return result(); }});
  }
  const Frontier::Entry* smallest() const { return sweep_.known().smallest(request_.time_limit); }
  Bytes upper() const { return smallest() != nullptr ? smallest()->needs() : own_peak_ + Bytes(1); }
  Bytes floor() const { return sweep_.known().floor(request_.time_limit); }
  // A budget inside the interval, divided into so many parts.
  static Bytes between(Bytes low, Bytes high, std::int64_t part, std::int64_t parts) {
    return low + Bytes(checked_mul_div((high - low).count(), part, parts, Rounding::floor));
  }
  std::vector<SweepTask> tasks_for(std::vector<Bytes> budgets) const;
  // The number of solves that this share of the remaining limits allows; at least one.
  std::int64_t solves(double share) const {
    const double left = sweep_.work_left(), one = least_solve(ops_);
    return left < kManySolves * one
               ? std::max<std::int64_t>(1, static_cast<std::int64_t>(share * left / one))
               : kManySolves;
  }
  // A race that fails keeps its results so far.
  void race_or_say_why() {
    bool watcher_threw = false;
    const auto told = [&] {
      watcher_threw = true;
      report();
      watcher_threw = false;
    };
    try {
      race(sweep_, request_.time_limit, sweep_.open() ? 1 : kRaceShare, told);
    } catch (const InputError&) {
      throw;
    } catch (const std::exception& error) {
      if (watcher_threw || is_checked_fault(error)) throw;
      sweep_.say_failed("the search for transforms", error.what());
    }
  }
  // At least the share of the remaining limits that one solve needs.
  bool round(std::vector<Bytes> budgets, double share);
  void narrow();
  void push();

  const FitRequest& request_;
  Bytes own_peak_;
  double ops_;
  Sweep sweep_;
};

std::vector<SweepTask> FitRun::tasks_for(std::vector<Bytes> budgets) const {
  std::ranges::sort(budgets, std::greater());
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  std::vector<SweepTask> tasks;
  for (Bytes budget : budgets)
    if (budget >= floor())
      tasks.push_back(
          {.budget = budget, .enough = budget < upper() ? request_.time_limit : Ticks()});
  return tasks;
}

bool FitRun::round(std::vector<Bytes> budgets, double share) {
  const Bytes upper_before = upper();
  share = std::clamp(least_solve(ops_) / std::max(1.0, sweep_.work_left()), share, 1.0);
  const bool ran = sweep_.round(tasks_for(std::move(budgets)), share, [&](const Cost& cost) {
    return cost.duration <= request_.time_limit && cost.peak < upper_before;
  });
  // Plans that are too long are start plans; one for each interval of budgets is enough.
  const std::int64_t stretch = std::max<std::int64_t>(1, own_peak_.count() / 64);
  std::int64_t last = -1;
  const Frontier::Entry* answer = smallest();
  sweep_.known().thin([&](const Frontier::Entry& entry) {
    const std::int64_t at = entry.needs().count() / stretch;
    return &entry == answer || std::exchange(last, at) != at;
  });
  if (ran) report();
  return ran;
}

void FitRun::narrow() {
  Bytes low = floor();  // or the largest budget at which nothing was found
  const auto narrow = static_cast<std::int64_t>(kNarrow * static_cast<double>(own_peak_.count()));
  for (int i = 0; i < kFirstSteps; ++i) {
    low = std::max(low, floor());
    const Bytes high = upper();
    if (high.count() - low.count() <= narrow) return;
    const double share = 1.0 / (kFirstSteps + kSteps - i);
    const std::int64_t parts = 1 + std::min(i == 0 ? kFirstProbes : kProbes, solves(share));
    std::vector<Bytes> budgets;
    for (std::int64_t part = 1; part < parts; ++part)
      budgets.push_back(between(low, high, part, parts));
    if (!round(budgets, share)) return;
    for (Bytes budget : budgets)
      if (budget < upper()) low = std::max(low, budget);
  }
}

void FitRun::push() {
  const std::int64_t little = std::max<std::int64_t>(1, own_peak_.count() / 400);
  // The last step is repeated while limits are left.
  for (int left = kSteps;; left = std::max(1, left - 1)) {
    const Bytes high = upper();
    if (floor() >= high) return;
    std::vector<Bytes> budgets{high - Bytes(1)};
    for (std::int64_t less : {little, 3 * little})
      if (high.count() > less) budgets.push_back(high - Bytes(less));
    budgets.push_back(high);
    for (std::int64_t part : {1, 2}) budgets.push_back(between(floor(), high, part, 3));
    // With work for few of them, another one each time.
    const auto few = std::min(std::ssize(budgets), solves(1.0 / left));
    std::ranges::rotate(budgets, budgets.begin() + (kSteps - left) * few % std::ssize(budgets));
    // Budgets that were searched to the end are skipped.
    bool ran = false;
    for (auto next = budgets.begin(); next != budgets.end() && !ran;) {
      const auto end = next + std::min(few, budgets.end() - next);
      ran = round({next, end}, 1.0 / left);
      next = end;
    }
    if (!ran) return;
  }
}

// For a solver that minimises live bytes itself.
Fit ask_once(const solve::SolverTable& solvers, const Question& question,
             const FitRequest& request) {
  const SweepSettings& how = request.settings;
  Fit fit;
  fit.terms = request.terms;
  fit.own_peak = own_peak(question.problem.graph);
  fit.time_limit = request.time_limit;
  fit.floor = solve::always_live(question.problem);
  const auto point = [&](const Plan& plan, const Cost& cost, std::string_view found_by) {
    Outcome outcome;
    outcome.status = Status::feasible;
    outcome.plan = plan;
    outcome.cost = cost;
    outcome.smallest_peak = cost.peak;
    outcome.bound = {Ticks(0), fit.floor};
    outcome.found_by = std::string(found_by);
    return TradeoffPoint{.budget = cost.peak, .outcome = std::move(outcome)};
  };
  Request asked{.solver = how.solver,
                .limits = how.limits,
                .seed = how.seed,
                .threads = how.threads,
                .options = how.options,
                .starts = {},
                .known = {},
                .watcher = {}};
  asked.watcher = [&](const solve::Progress& now) {
    if (now.plan == nullptr) return;
    if (how.finds) how.finds(*now.plan, now.cost, now.solver);
    if (!request.watcher) return;
    fit.point = point(*now.plan, now.cost, now.solver);
    request.watcher({fit.floor, now.cost.peak, [&] { return fit; }});
  };
  Answer answer = solve(solvers, question, asked);
  Outcome& outcome = answer.outcome;
  fit.floor = std::max(fit.floor, outcome.bound.peak);
  fit.point.reset();
  if (outcome.plan) {
    fit.point = point(*outcome.plan, outcome.cost, outcome.found_by);
    fit.point->outcome.parts = std::move(outcome.parts);
    fit.point->outcome.note = std::move(outcome.note);
  }
  fit.stopped_by = outcome.stopped_by;
  if (fit.stopped_by == StopReason::finished && !fit.proven()) fit.stopped_by = StopReason::gave_up;
  return fit;
}

}  // namespace

Fit fit(const solve::SolverTable& solvers, const Graph& graph, const FitRequest& request) {
  Question question = question_on(graph, Bytes::max(), request.terms);
  question.problem.objective = Objective::least_memory;
  question.problem.time_limit = request.time_limit;
  const solve::Solver* solver = solvers.find(request.settings.solver);
  if (request.footprint.kind == Footprint::live && solver != nullptr &&
      support_of(*solver, question.problem).yes)
    return ask_once(solvers, question, request);
  return FitRun(solvers, graph, request).run();
}

}  // namespace lowtide::driver
