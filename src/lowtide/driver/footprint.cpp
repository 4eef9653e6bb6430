// Problem: the shortest plan that takes no more than the budget where it lies.
//
// Idea: solvers know live bytes. What a plan takes beyond them is another amount for each plan,
// also among plans that are as good. So plan for live bytes, measure the plans that the solver has
// found on the way too, and take the shortest one that fits. Then plan for another budget of live
// bytes, which live_budgets.cpp chooses: a smaller one while nothing fits, a larger one while plans
// do. Each round has a seed of its own. Where that does not help, small changes of the order of
// computations may (footprint_walk.cpp). It ends with the limits, or when several rounds have found
// nothing that is shorter or takes less.
//
// Invariant: every plan returned has been measured and is within the budget. Every plan that fits
// keeps the budget in live bytes too, so bounds and floors of the first round hold, and only they
// prove that there is none.
//
// Loses: what is taken is not monotone in the budget of live bytes, so a plan that fits may have
// more live bytes than shorter ones that do not, and not be looked for.
#include "lowtide/driver/footprint.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/driver/footprint_walk.h"
#include "lowtide/driver/gate.h"
#include "lowtide/driver/live_budgets.h"
#include "lowtide/sim/verify.h"

namespace lowtide::driver {

namespace {

constexpr double kFirstShare = 0.35;  // of the limits
// The next rounds get shares as if there were so many in all; those after them a third of what is
// left, until it is less than the least share of the limits.
constexpr int kRounds = 8, kThird = 3;
constexpr double kLeastShare = 0.04;
constexpr int kPatience = 6;  // rounds without anything better, once all budgets were tried
constexpr std::int64_t kAsGood = 1'000;  // a part of the duration, within which plans are as good

// What is measured in a round: the latest plans, more of them the shorter they are.
constexpr std::size_t kPlans = 6, kMostPlans = 64, kSteps = 20'000;
constexpr double kMeasureShare = 0.25;  // of what is left

// Where nothing fits: plans from which to walk; shares of what is left, and of that for one plan.
constexpr std::ptrdiff_t kWalks = 4;
constexpr double kWalkShare = 0.5, kWalkMeasureShare = 0.01;

// The MiB are rounded up, so that a budget of so many is enough.
std::string size_text(Bytes bytes) {
  const std::int64_t unit = layout::kMiB.count(), mib = (bytes.count() + unit - 1) / unit;
  const std::string exact = std::to_string(bytes.count()) + " bytes";
  return bytes < layout::kMiB ? exact : std::to_string(mib) + " MiB (" + exact + ")";
}

struct Candidate {
  std::shared_ptr<const Plan> plan;
  Cost cost;
  std::string found_by;
};

class FootprintRun {
 public:
  FootprintRun(const solve::SolverTable& solvers, const Question& question, const Request& request,
               const Measure& measure, Ticks enough)
      : solvers_(solvers),
        question_(question),
        budget_(question.problem.budget),
        request_(request),
        measure_(measure),
        enough_(enough),
        any_transforms_(looks_for_transforms(solvers, request.solver, question)),
        limits_(request.limits),
        live_(budget_) {}

  FootprintAnswer run() {
    first_ = round(kFirstShare);
    if (!first_.outcome.plan && !by_itself(first_.outcome.stopped_by) && !ended())
      first_ = round(1);
    if (!first_.outcome.plan) return finish();
    learn(first_.outcome);
    while (!done()) {
      if (is_stuck() && !std::exchange(walked_, true)) {
        walk(kWalkShare);
        continue;
      }
      const bool whole = live_.next() == budget_ && !any_transforms_;
      const Answer answer = round(share());
      Ticks& bound = first_.outcome.bound.duration;
      if (whole) bound = std::max(bound, answer.outcome.bound.duration);
      learn(answer.outcome);
    }
    if (best() == nullptr && !ended()) walk(1);
    return finish();
  }

 private:
  // Plans for fewer live bytes do not help, or not soon.
  bool is_stuck() const {
    return best() == nullptr && (live_.exhausted() || found_.rounds >= kRounds);
  }

  // Near the plans that take least, in turn (footprint_walk.h).
  void walk(double share) {
    const std::vector<Frontier::Entry>& measured = found_.measured.entries();
    const std::vector<Frontier::Entry> starts(
        measured.begin(),
        measured.begin() + std::min<std::ptrdiff_t>(kWalks, std::ssize(measured)));
    Limits limits(limits_.remaining(share));
    for (std::size_t i = 0; i < starts.size() && best() == nullptr; ++i) {
      Limits part(limits.remaining(1.0 / static_cast<double>(starts.size() - i)));
      const MeasureBytes measured_bytes = [&](const Plan& plan, const Cost& cost) {
        Limits one(part.remaining(kWalkMeasureShare));
        const Bytes bytes =
            measure({std::make_shared<const Plan>(plan), cost, starts[i].found_by}, one);
        part.spend_all(one.work());
        return bytes;
      };
      walk_footprints(question_, starts[i], request_.seed + i, measured_bytes, part);
      limits.spend_all(part.work());
    }
    limits_.spend_all(limits.work());
  }

  double share() const {
    if (used_up() || last_) return 1;
    return 1.0 / std::max(kThird, kRounds - found_.rounds);
  }
  bool used_up() const { return limits_.used() > 1 - kLeastShare; }

  Answer round(double share) {
    last_ = last_ || used_up();
    Question question = question_;
    question.problem.budget = live_.next();
    Request request = request_;
    CancelToken enough(request.limits.cancel);
    request.limits = limits_.remaining(share);
    request.limits.cancel = &enough;
    request.seed += static_cast<std::uint64_t>(found_.rounds);
    if (found_.rounds > 0 && !any_transforms_) request.known = first_.outcome.bound;
    if (!plans_.empty()) request.starts.push_back(*plans_.front().plan);
    for (const Frontier::Entry* known : {found_.measured.smallest(), best()})
      if (known != nullptr) request.starts.insert(request.starts.begin(), *known->plan);
    plans_.clear();
    request.watcher = [&](const solve::Progress& progress) {
      if (progress.plan != nullptr) {
        keep(*progress.plan, progress.cost, progress.solver);
        if (progress.cost.duration <= enough_) enough.cancel();
      }
      if (request_.watcher) request_.watcher(progress);
    };
    ++found_.rounds;
    Answer answer = solve(solvers_, question, request);
    limits_.spend_all(answer.work);
    verifications_ += answer.verifications;
    const Outcome& outcome = answer.outcome;
    if (outcome.plan) keep(*outcome.plan, outcome.cost, outcome.found_by);
    measure_all();
    for (const std::optional<Plan>* other : {&answer.smallest, &answer.repair_start})
      if (*other) measure_unverified(**other);
    return answer;
  }

  // The latest plans of a round, the shortest first.
  void keep(const Plan& plan, const Cost& cost, std::string_view found_by) {
    if (!plans_.empty() && plans_.front().cost == cost) return;
    plans_.push_front({std::make_shared<const Plan>(plan), cost, std::string(found_by)});
    const std::size_t most =
        std::clamp(kSteps / std::max<std::size_t>(1, plan.steps.size()), kPlans, kMostPlans);
    if (plans_.size() > most) plans_.pop_back();
  }

  // The plans of the round, until one of those that are as good fits. Of these, `least_` takes
  // least.
  void measure_all() {
    least_ = nullptr;
    fits_ = false;
    if (plans_.empty()) return;
    const Ticks shortest = plans_.front().cost.duration;
    const Ticks as_good = shortest + Ticks(shortest.count() / kAsGood);
    for (const Candidate& candidate : plans_) {
      const bool good = candidate.cost.duration <= as_good;
      if (least_ != nullptr && (ended() || (fits_ && !good))) break;
      if (!good && !found_.measured.improves(candidate.cost)) continue;
      const Bytes taken = measure(candidate, kMeasureShare / static_cast<double>(plans_.size()));
      if (!good || (least_ != nullptr && taken >= least_taken_)) continue;
      least_ = &candidate;
      least_taken_ = taken;
      fits_ = taken <= budget_;
    }
  }

  // Plans that the solver has not verified, over its budget or not.
  void measure_unverified(const Plan& plan) {
    if (ended()) return;
    Question unlimited = question_;
    unlimited.problem.budget = Bytes::max();
    const Verdict verdict = verify(unlimited, plan);
    if (verdict.ok && found_.measured.improves(verdict.cost))
      measure({std::make_shared<const Plan>(plan), verdict.cost, request_.solver},
              kMeasureShare / kPlans);
  }

  Bytes measure(const Candidate& candidate, double share) {
    Limits limits(limits_.remaining(share));
    const Bytes bytes = measure(candidate, limits);
    limits_.spend_all(limits.work());
    return bytes;
  }
  Bytes measure(const Candidate& candidate, Limits& limits) {
    Taken taken = measure_(*candidate.plan, limits);
    const Bytes bytes = taken.bytes;
    const bool better =
        found_.measured.add({candidate.cost, candidate.plan, candidate.found_by, std::move(taken)});
    if (better) dry_ = 0;
    return bytes;
  }

  // Chooses the next budget of live bytes.
  void learn(const Outcome& outcome) {
    ++dry_;
    if (!outcome.plan)
      live_.none(outcome.bound.peak);
    else if (!fits_)
      live_.misses(least_->cost.peak, least_taken_, plans_.front().cost.peak);
    else if (live_.next() < budget_)
      live_.fits();
    else if (std::exchange(as_good_as_live_, true) || by_itself(outcome.stopped_by))
      last_ = true;
  }

  bool done() {
    if (ended() || last_) return true;
    if (const Frontier::Entry* known = best())
      if (known->cost.duration <= std::max(enough_, first_.outcome.bound.duration)) return true;
    // As good as plans for live bytes: what is left of the limits looks for a better one, once.
    if (as_good_as_live_) last_ = true;
    return !as_good_as_live_ && live_.exhausted() && dry_ > kPatience;
  }

  const Frontier::Entry* best() const { return found_.measured.best(budget_); }

  FootprintAnswer finish() {
    found_.answer = std::move(first_);
    Answer& answer = found_.answer;
    Outcome& outcome = answer.outcome;
    answer.work = limits_.work();
    answer.smallest.reset();
    answer.repair_start.reset();
    const bool had_plan = outcome.plan.has_value();
    const Frontier::Entry* found = best();
    if (found != nullptr) {
      // Of plans with other transforms nothing was proven.
      if (!had_plan || outcome.plan->transforms != found->plan->transforms) outcome.bound = Bound();
      outcome.plan = *found->plan;
      outcome.cost = found->cost;
      outcome.found_by = found->found_by;
      outcome.status =
          outcome.cost.duration == outcome.bound.duration ? Status::optimal : Status::feasible;
      found_.taken = found->taken;
      Gate gate("footprint");
      gate.verify(question_, outcome);
      verifications_ += gate.verifications();
      if (found_.rounds > 2)
        add_note(outcome, "planned " + std::to_string(found_.rounds) +
                              " times, for other live bytes, until the footprint fitted");
    } else if (had_plan) {
      outcome.plan.reset();
      outcome.found_by.clear();
      outcome.status = Status::unknown;
      add_note(outcome,
               "plans with live bytes within the budget were found, yet their least footprint is " +
                   size_text(found_.measured.smallest()->needs()));
    }
    if (had_plan && outcome.status != Status::optimal)
      outcome.stopped_by = ended()                                     ? limit_reached()
                           : found && outcome.cost.duration <= enough_ ? StopReason::cancelled
                                                                       : StopReason::gave_up;
    answer.verifications = verifications_;
    return std::move(found_);
  }

  bool ended() const { return limits_.stopped() || limits_.over(); }
  StopReason limit_reached() {
    limits_.spend(Limits::kPollWork);  // a look at the clock
    return limits_.stopped() ? limits_.reason() : StopReason::deadline;
  }

  const solve::SolverTable& solvers_;
  const Question& question_;
  Bytes budget_;
  const Request& request_;
  const Measure& measure_;
  Ticks enough_;
  bool any_transforms_;  // bounds are those of each plan's own transforms
  Limits limits_;
  LiveBudgets live_;
  Answer first_;
  std::deque<Candidate> plans_;  // of the round
  const Candidate* least_ = nullptr;
  Bytes least_taken_;
  bool fits_ = false;             // one of those that are as good
  bool as_good_as_live_ = false;  // plans for the whole budget fit
  bool last_ = false;             // no round comes after this one
  bool walked_ = false;
  int dry_ = 0;  // rounds since a plan was better than those before
  int verifications_ = 0;
  FootprintAnswer found_;
};

}  // namespace

FootprintAnswer solve_within(const solve::SolverTable& solvers, const Question& question,
                             const Request& request, const Measure& measure, Ticks enough) {
  if (question.problem.objective != Objective::least_time)
    throw InputError("footprint", "is for plans of least time within a budget");
  return FootprintRun(solvers, question, request, measure, enough).run();
}

}  // namespace lowtide::driver
