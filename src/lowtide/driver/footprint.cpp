// Problem: the shortest plan that takes no more than the budget where it lies.
//
// Idea: solvers know live bytes. What a plan takes beyond them is another amount for each plan,
// also among plans that are as good. So plan for live bytes, measure the last plans that the solver
// has improved on too, and take the shortest one that fits. If none that is as good does, plan
// again with a budget of live bytes that is smaller by the same ratio; once plans fit, look between
// their budget and the smallest one for which they did not. Each round has a seed of its own.
//
// Invariant: every plan returned has been measured and is within the budget. Every plan that fits
// keeps the budget in live bytes too, so bounds and floors of the first round hold.
//
// Loses: what is taken is not monotone in the budget of live bytes, so a plan for a larger one may
// fit and not be looked for.
#include "lowtide/driver/footprint.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/driver/gate.h"

namespace lowtide::driver {

namespace {

constexpr int kRounds = 8;
constexpr double kFirstShare = 0.35;  // of the limits
constexpr std::size_t kPlans = 6;     // that are measured in a round
// A part of the duration, within which plans are as good; and of the budget, within which budgets
// of live bytes are the same.
constexpr std::int64_t kAsGood = 1'000, kNarrow = 2'000;

struct Candidate {
  Plan plan;
  Cost cost;
};

class FootprintRun {
 public:
  FootprintRun(const solve::SolverTable& solvers, const Problem& problem, const Request& request,
               const Measure& measure)
      : solvers_(solvers),
        problem_(problem),
        request_(request),
        measure_(measure),
        any_transforms_(looks_for_transforms(solvers, request.solver, problem)),
        limits_(request.limits),
        live_(problem.budget),
        missed_(problem.budget) {}

  FootprintAnswer run() {
    first_ = round();
    floor_ = first_.outcome.bound.peak;
    if (!first_.outcome.plan || !judge(first_.outcome)) return finish();
    while (found_.rounds < kRounds && !ended()) {
      const bool whole = live_ == problem_.budget && !any_transforms_;
      const Answer answer = round();
      Ticks& bound = first_.outcome.bound.duration;
      if (whole) bound = std::max(bound, answer.outcome.bound.duration);
      if (!judge(answer.outcome)) break;
    }
    return finish();
  }

 private:
  Answer round() {
    Problem problem = problem_;
    problem.budget = live_;
    Request request = request_;
    const int left = kRounds - found_.rounds;
    const double share = found_.rounds == 0 ? kFirstShare : last_ ? 1.0 : 1.0 / left;
    request.limits = limits_.remaining(share);
    request.seed += static_cast<std::uint64_t>(found_.rounds);
    if (found_.rounds > 0 && !any_transforms_) request.known = first_.outcome.bound;
    if (best_) request.starts.insert(request.starts.begin(), best_->plan);
    if (!plans_.empty()) request.starts.push_back(plans_.front().plan);
    plans_.clear();
    request.watcher = [this](const solve::Progress& progress) {
      if (progress.plan != nullptr) keep(*progress.plan, progress.cost);
      if (request_.watcher) request_.watcher(progress);
    };
    ++found_.rounds;
    Answer answer = solve(solvers_, problem, request);
    limits_.spend_all(answer.work);
    work_ += answer.work;
    verifications_ += answer.verifications;
    if (answer.outcome.plan) keep(*answer.outcome.plan, answer.outcome.cost);
    return answer;
  }

  // The latest plans of a round, the shortest first.
  void keep(const Plan& plan, const Cost& cost) {
    if (!plans_.empty() && plans_.front().cost == cost) return;
    plans_.push_front({plan, cost});
    if (plans_.size() > kPlans) plans_.pop_back();
  }

  // Takes the shortest of the round's plans that fits, and chooses the next budget of live bytes.
  // False: done.
  bool judge(const Outcome& outcome) {
    if (!outcome.plan) {
      empty_ = std::max(empty_, live_);
      return between(std::max(empty_, fitted_));
    }
    const Ticks shortest = plans_.front().cost.duration;
    const Ticks as_good = shortest + Ticks(shortest.count() / kAsGood);
    const Candidate* least = nullptr;  // the one that takes least of those that are as good
    Bytes least_taken = Bytes::max();
    bool fits = false;
    for (const Candidate& candidate : plans_) {
      if (least != nullptr && (fits || ended())) break;
      const Bytes taken = measure_(candidate.plan);
      found_.least = std::min(found_.least.value_or(taken), taken);
      const bool good = candidate.cost.duration <= as_good;
      if (least == nullptr || (good && taken < least_taken)) {
        least = &candidate;
        least_taken = taken;
      }
      if (taken > problem_.budget) continue;
      fits = fits || good;
      if (best_ && candidate.cost.duration >= best_->cost.duration) continue;
      best_ = candidate;
      found_.taken = taken;
      found_by_ = outcome.found_by;
    }
    if (!fits) return below(*least, least_taken);
    fitted_ = std::max(fitted_, live_);
    if (live_ < problem_.budget) return between(fitted_);
    // As good as plans for live bytes: what is left of the limits looks for a better one, once.
    return !by_itself(outcome.stopped_by) && !std::exchange(last_, true);
  }

  bool below(const Candidate& plan, Bytes taken) {
    missed_ = std::min(missed_, live_);
    // The next plan may take about the same ratio of its live bytes.
    const Bytes next(checked_mul_div(plan.cost.peak.count(), problem_.budget.count(), taken.count(),
                                     Rounding::floor));
    const Bytes low = std::max({empty_, fitted_, floor_});
    if (next <= low || next >= missed_) return between(low);
    live_ = next;
    return true;
  }

  bool between(Bytes low) {
    low = std::max(low, floor_);
    if (missed_ - low > Bytes(problem_.budget.count() / kNarrow))
      live_ = Bytes(low.count() + (missed_ - low).count() / 2);
    else if (best_)
      live_ = std::max(fitted_, low);
    else
      return false;
    return true;
  }

  FootprintAnswer finish() {
    found_.answer = std::move(first_);
    Answer& answer = found_.answer;
    Outcome& outcome = answer.outcome;
    answer.work = work_;
    answer.smallest.reset();
    const bool had_plan = outcome.plan.has_value();
    if (best_) {
      // Of plans with other transforms nothing was proven.
      if (outcome.plan->transforms != best_->plan.transforms) outcome.bound = Bound();
      outcome.plan = std::move(best_->plan);
      outcome.cost = best_->cost;
      outcome.found_by = found_by_;
      outcome.status =
          outcome.cost.duration == outcome.bound.duration ? Status::optimal : Status::feasible;
      Gate gate("footprint");
      gate.verify(problem_, outcome);
      verifications_ += gate.verifications();
      if (found_.rounds > 2)
        add_note(outcome, "planned " + std::to_string(found_.rounds) +
                              " times, for less and less live bytes, until the footprint fitted");
    } else if (had_plan) {
      outcome.plan.reset();
      outcome.found_by.clear();
      outcome.status = Status::unknown;
      add_note(outcome,
               "plans with live bytes within the budget were found, yet their least footprint is " +
                   std::to_string(found_.least->count()) + " bytes");
    }
    if (had_plan && outcome.status != Status::optimal)
      outcome.stopped_by = ended() ? limit_reached() : StopReason::gave_up;
    answer.verifications = verifications_;
    return std::move(found_);
  }

  bool ended() const { return limits_.stopped() || limits_.over(); }
  StopReason limit_reached() {
    limits_.spend(Limits::kPollWork);  // a look at the clock
    return limits_.stopped() ? limits_.reason() : StopReason::deadline;
  }

  const solve::SolverTable& solvers_;
  const Problem& problem_;
  const Request& request_;
  const Measure& measure_;
  bool any_transforms_;  // bounds are those of each plan's own transforms
  Limits limits_;
  Bytes live_;            // the budget of the next round
  Bytes missed_;          // the smallest for which no plan that is as good fitted
  Bytes fitted_, empty_;  // the largest for which one did, and for which there was none
  Bytes floor_;
  bool last_ = false;  // the next round is the last one
  Answer first_;
  std::deque<Candidate> plans_;
  std::optional<Candidate> best_;
  std::string found_by_;
  std::int64_t work_ = 0;
  int verifications_ = 0;
  FootprintAnswer found_;
};

}  // namespace

FootprintAnswer solve_within(const solve::SolverTable& solvers, const Problem& problem,
                             const Request& request, const Measure& measure) {
  if (problem.objective != Objective::least_time)
    throw InputError("footprint", "is for plans of least time within a budget");
  return FootprintRun(solvers, problem, request, measure).run();
}

}  // namespace lowtide::driver
