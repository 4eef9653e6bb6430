// Problem: the shortest plan that takes no more than the budget where it lies.
//
// Idea: solvers know live bytes. What a plan takes beyond them is small, and another amount for
// each plan, so plan for live bytes, measure the plan, and plan again with a budget that is smaller
// by the excess. Once a plan fits, look between its budget and the smallest one whose plan did not.
// Each round has a seed of its own: plans that are as good differ in how they lie, and the shortest
// of those that fit wins.
//
// Invariant: every plan returned has been measured and is within the budget. Every plan that fits
// keeps the budget in live bytes too, so bounds and floors of the first round hold.
//
// Loses: what is taken is not monotone in the budget of live bytes, so a plan for a larger one may
// fit and not be looked for.
#include "lowtide/driver/footprint.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::driver {

namespace {

constexpr int kRounds = 8;
constexpr double kFirstShare = 0.35;     // of the limits
constexpr std::int64_t kNarrow = 2'000;  // a part of the budget: then other seeds are all there is

class FootprintRun {
 public:
  FootprintRun(const solve::SolverTable& solvers, const Problem& problem, const Request& request,
               const Measure& measure)
      : solvers_(solvers),
        problem_(problem),
        request_(request),
        measure_(measure),
        limits_(request.limits),
        live_(problem.budget),
        missed_(problem.budget) {}

  FootprintAnswer run() {
    first_ = round();
    floor_ = first_.outcome.bound.peak;
    if (!first_.outcome.plan || !judge(first_)) return finish();
    while (found_.rounds < kRounds && !limits_.over()) {
      const bool whole = live_ == problem_.budget;
      const Answer answer = round();
      Ticks& bound = first_.outcome.bound.duration;
      if (whole) bound = std::max(bound, answer.outcome.bound.duration);
      if (!judge(answer)) break;
    }
    return finish();
  }

 private:
  Answer round() {
    Problem problem = problem_;
    problem.budget = live_;
    Request request = request_;
    const double share = found_.rounds == 0 ? kFirstShare
                         : last_fits_       ? 1.0
                                            : 1.0 / (kRounds - found_.rounds);
    request.limits = limits_.remaining(share);
    request.seed += static_cast<std::uint64_t>(found_.rounds);
    if (found_.rounds > 0) request.known = first_.outcome.bound;
    ++found_.rounds;
    if (best_) request.starts.insert(request.starts.begin(), *best_->outcome.plan);
    if (last_) request.starts.push_back(*last_);
    Answer answer = solve(solvers_, problem, request);
    limits_.spend_all(answer.work);
    work_ += answer.work;
    verifications_ += answer.verifications;
    return answer;
  }

  // Takes the round's plan if it fits, and chooses the next budget of live bytes. False: done.
  bool judge(const Answer& answer) {
    const Outcome& outcome = answer.outcome;
    if (!outcome.plan) {
      empty_ = std::max(empty_, live_);
      return between(std::max(empty_, fitted_));
    }
    last_ = outcome.plan;
    const Bytes taken = measure_(*outcome.plan);
    found_.least = std::min(found_.least.value_or(taken), taken);
    if (taken > problem_.budget) {
      missed_ = std::min(missed_, live_);
      // Of a plan that takes a half more than is live, the next one will about do so too.
      const Bytes next(checked_mul_div(outcome.cost.peak.count(), problem_.budget.count(),
                                       taken.count(), Rounding::floor));
      const Bytes low = std::max({empty_, fitted_, floor_});
      if (next <= low) return between(low);
      live_ = next;
      return true;
    }
    if (!best_ || outcome.cost.duration < best_->outcome.cost.duration) {
      best_ = answer;
      found_.taken = taken;
    }
    fitted_ = std::max(fitted_, live_);
    if (live_ < problem_.budget) return between(fitted_);
    // As good as a plan for live bytes: what is left of the limits looks for a better one, once.
    return !by_itself(outcome.stopped_by) && !std::exchange(last_fits_, true);
  }

  bool between(Bytes low) {
    low = std::max(low, floor_);
    if (missed_ - low > Bytes(problem_.budget.count() / kNarrow))
      live_ = Bytes(low.count() + (missed_ - low).count() / 2);
    else if (best_)
      live_ = fitted_;
    else
      return false;
    return true;
  }

  FootprintAnswer finish() {
    Answer& answer = found_.answer = best_ ? *best_ : first_;
    Outcome& outcome = answer.outcome;
    answer.work = work_;
    answer.verifications = verifications_;
    outcome.bound = first_.outcome.bound;
    if (best_) {
      outcome.status =
          outcome.cost.duration == outcome.bound.duration ? Status::optimal : Status::feasible;
      add_note(outcome, "the budget limits what is taken; rounds of planning for live bytes: " +
                            std::to_string(found_.rounds));
      return std::move(found_);
    }
    if (!outcome.plan) return std::move(found_);
    outcome.plan.reset();
    outcome.found_by.clear();
    outcome.status = Status::unknown;
    outcome.stopped_by = limits_.stopped() ? limits_.reason() : StopReason::gave_up;
    add_note(outcome,
             "plans within the budget of live bytes were found, yet the least that one of "
             "them takes is " +
                 std::to_string(found_.least->count()) + " bytes");
    return std::move(found_);
  }

  const solve::SolverTable& solvers_;
  const Problem& problem_;
  const Request& request_;
  const Measure& measure_;
  Limits limits_;
  Bytes live_;            // the budget of the next round
  Bytes missed_;          // the smallest for which a plan took too much
  Bytes fitted_, empty_;  // the largest for which one fitted, and for which there was none
  Bytes floor_;
  bool last_fits_ = false;
  Answer first_;
  std::optional<Answer> best_;
  std::optional<Plan> last_;
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
