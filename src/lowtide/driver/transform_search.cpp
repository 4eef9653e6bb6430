// Problem: choose the transforms of a plan, together with the plan.
//
// Idea: the original graph gets a short run. Then candidates are estimated, in milliseconds each:
// the time that they add, and the recomputation that the budget needs on their graph. The best few
// are planned, each in a short run of the same solver, which sees an ordinary graph. Estimates
// cannot distinguish six parts from seven, so the winner is also planned with a few more and fewer
// parts. The best of all is the base of the next level: candidates on its graph are nested in
// earlier splits, or stand beside them. When a level wins nothing, the rest of the limits goes to
// the best. A step with a barrier is also tried with its backward hoisted, since the barrier
// separates the forward from the backward. Substitutions that save time are tried in two sets: all
// of them, and those that hold no more bytes; splits are tried on the graph of the second set.
//
// Source: MAGIS (ASPLOS 2024), sections 5.1 and 6, whose search schedules every candidate; here
// most are only estimated.
//
// Invariant: the answer is never worse than the best of the runs, of which the first has no
// transforms.
//
// Loses: if no transform pays, the share of the limits that the search for one took.
#include "lowtide/driver/transform_search.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <tuple>
#include <utility>
#include <variant>

#include "lowtide/base/error.h"
#include "lowtide/driver/least_solve.h"
#include "lowtide/driver/transform_ideas.h"
#include "lowtide/rewrite/profile.h"
#include "lowtide/rewrite/substitutions.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/transforms/transform_cache.h"

namespace lowtide::driver {

namespace {

constexpr double kFirstShare = 0.12;                       // of the limits, for the original graph
constexpr double kFirstSolves = 2, kMostFirstShare = 0.3;  // the same, with little work
constexpr double kStartShare = 0.25;                       // for the runs of each start
constexpr double kTrialShare = 0.05;                       // for each planned candidate
// More if the graph is so large that less work per op gives no information; then for fewer
// candidates.
constexpr double kTrialWork = 3000, kMostTrialShare = 0.2, kTrialsUntil = 0.6;
constexpr int kLevels = 3;
constexpr int kMostMisses = 2;  // in a row, with more and more parts or with fewer
// The last level is the one that wins less than this share of the base duration.
constexpr double kLeastGain = 0.0005;

class TransformSearch {
 public:
  TransformSearch(const Question& question, const Request& request, const SolveTrial& solve)
      : question_(question),
        problem_(question.problem),
        request_(request),
        solve_(solve),
        limits_(request.limits) {}

  // An error in the search for transforms ends that search, and not the solve.
  Answer run() {
    try {
      search();
    } catch (const InputError&) {
      throw;
    } catch (const std::exception& error) {
      if (watcher_threw_ || is_checked_fault(error)) throw;
      add_parts(parts_, {{.name = "the search for transforms", .failure = error.what()}});
      if (!limits_.stopped() || !begun_) run_with({}, 1);
    }
    return finish();
  }

 private:
  void search() {
    const bool started = std::ranges::any_of(
        request_.starts, [](const Plan& start) { return !start.transforms.empty(); });
    if (!started && !is_anything_proposed()) {
      run_with({}, 1);
      return;
    }
    run_with({}, started ? kTrialShare : first_share());
    using rewrite::Taken;
    const Transforms faster = substituted({}, Taken::faster),
                     lighter = substituted({}, Taken::faster_and_lighter);
    const Ticks least = least_;
    if (settled(least)) return;
    ideas_.calibrate(duration());
    // Most gains come from regions of the hoisted graph, so these are tried first.
    std::vector<Transforms> begun;
    if (const Transforms hoisted = with_hoist(question_); !hoisted.empty()) {
      begun.push_back(substituted(hoisted, Taken::faster_and_lighter));
      if (begun.front() != hoisted) begun.push_back(hoisted);
    }
    begun.emplace_back();
    for (const Plan& start : request_.starts)
      if (std::ranges::find(begun, start.transforms) == begun.end()) {
        begun.push_back(start.transforms);
        run_with(start.transforms, kStartShare);
      }
    const bool is_hoisted = !begun.front().empty();
    if (is_hoisted) run_with(begun.front(), kTrialShare);
    if (!faster.empty()) run_with(faster, kFirstShare);
    if (!lighter.empty() && lighter != faster) run_with(lighter, kFirstShare);
    for (int level = 0; level < kLevels && !limits_.stopped(); ++level) {
      const Ticks before = duration();
      const Bytes smallest = smallest_;
      std::vector<Idea> ideas = ideas_.best(begun, duration());
      // A candidate that fits without recomputation has a plan at once, others only with work for
      // each of their ops.
      if (!ideas.empty() && is_scarce(ideas.front()))
        std::ranges::stable_partition(
            ideas, [&](const Idea& idea) { return idea.peak <= problem_.budget; });
      for (const Idea& idea : ideas) {
        if (is_time_up()) break;
        // The barrier separates what the hoist joins.
        if (is_hoisted && idea.base->transforms().empty() && is_scarce(idea)) continue;
        // An earlier candidate may have won by so much that this one cannot.
        if (idea.missing == Bytes(0) && idea.time >= duration()) continue;
        run_with(idea.transforms, trial_share(idea));
      }
      for (const Idea& idea : ideas)
        if (idea.transforms == best_transforms()) tune(idea);
      if (settled(least)) return;
      const auto won = before == Ticks::max() ? duration() < before || smallest_ < smallest
                                              : static_cast<double>((before - duration()).count()) >
                                                    kLeastGain * static_cast<double>(least.count());
      if (!won || (!ideas.empty() && is_scarce(ideas.front()))) break;
      begun = {best_transforms()};
    }
    // If the best list cannot win more, the original graph may.
    const bool is_done = best_.outcome.plan && best_.outcome.bound.duration >= duration();
    const bool plain = is_done && plain_bound_ < duration();
    if (!limits_.stopped()) run_with(plain ? Transforms() : Transforms(best_transforms()), 1);
  }

  Ticks duration() const { return best_.outcome.plan ? best_.outcome.cost.duration : Ticks::max(); }
  // A larger share if there is little work, since a smaller one gives no information.
  double first_share() const {
    const double all = all_work();
    const double ops = static_cast<double>(problem_.graph.op_count());
    return all > 0 ? std::clamp(kFirstSolves * least_solve(ops) / all, kFirstShare, kMostFirstShare)
                   : kFirstShare;
  }
  double trial_share(const Idea& idea) const {
    const double all = all_work();
    const double enough = all > 0 ? kTrialWork * static_cast<double>(idea.made_ops()) / all : 0;
    return std::clamp(enough, kTrialShare, kMostTrialShare);
  }
  // There is time for few runs of such graphs.
  bool is_scarce(const Idea& idea) {
    const bool is = trial_share(idea) > kTrialShare;
    is_cut_ = is_cut_ || is;
    return is;
  }
  // The work that the limits allow, approximately; 0 without limits.
  double all_work() const {
    const double seconds = request_.limits.seconds.value_or(0);
    return request_.limits.work ? static_cast<double>(*request_.limits.work)
                                : seconds * request_.threads * kWorkPerSecond;
  }
  bool is_time_up() {
    const bool is = limits_.stopped() || limits_.used() > kTrialsUntil;
    is_cut_ = is_cut_ || is;
    return is;
  }
  bool settled(Ticks least) const {
    return limits_stopped_ || !best_.support.yes || duration() <= least;
  }
  // Of the best plan, or without one of the plan with the smallest peak.
  const Transforms& best_transforms() const {
    if (best_.outcome.plan) return best_.outcome.plan->transforms;
    return smallest_transforms_;
  }

  void run_with(const Transforms& transforms, double share) {
    Question question = question_;
    question.transforms = transforms;
    Request request = request_;
    request.limits = limits_.remaining(share);
    request.starts.clear();
    for (const Plan& plan : known_)
      if (plan.transforms == transforms) request.starts.push_back(plan);
    for (const Plan& plan : request_.starts)
      if (plan.transforms == transforms) request.starts.push_back(plan);
    request.known = {};
    const double seconds = limits_.seconds();
    if (request_.watcher)
      request.watcher = [&, seconds](const solve::Progress& now) {
        if (now.plan == nullptr ? best_.outcome.plan.has_value() : now.cost.duration >= duration())
          return;
        solve::Progress told = now;
        told.seconds += seconds;
        try {
          request_.watcher(told);
        } catch (...) {
          watcher_threw_ = true;
          throw;
        }
      };
    Answer answer = solve_(question, request);
    limits_.spend(answer.work);
    take(std::move(answer), transforms, seconds);
  }

  void take(Answer answer, const Transforms& transforms, double seconds) {
    add_parts(parts_, answer.outcome.parts);
    if (answer.outcome.stopped_by == StopReason::cancelled) limits_stopped_ = true;
    for (Incumbent now : answer.outcome.history) {
      now.seconds += seconds;
      if (history_.empty() || now.cost.duration < history_.back().cost.duration)
        history_.push_back(now);
    }
    if (answer.outcome.smallest_peak && *answer.outcome.smallest_peak < smallest_) {
      smallest_ = *answer.outcome.smallest_peak;
      smallest_transforms_ = transforms;
    }
    for (const auto* plan : {&answer.outcome.plan, &answer.smallest, &answer.repair_start})
      if (*plan) known_.push_back(**plan);
    const bool first = !begun_;
    begun_ = true;
    const auto rank = [](const Answer& one) {
      return std::tuple(!one.outcome.plan, one.outcome.cost.duration, one.outcome.cost.peak);
    };
    const bool same = best_.outcome.plan && answer.outcome.plan &&
                      answer.outcome.plan->transforms == best_.outcome.plan->transforms;
    const Bound bound = best_.outcome.bound;
    if (transforms.empty()) plain_bound_ = std::max(plain_bound_, answer.outcome.bound.duration);
    if (first || (answer.outcome.plan && rank(answer) <= rank(best_))) {
      best_ = std::move(answer);
      if (same)  // both runs have proven bounds of the same graph
        best_.outcome.bound.duration = std::max(best_.outcome.bound.duration, bound.duration);
    } else {
      best_.outcome.stopped_by = answer.outcome.stopped_by;
    }
  }

  // A region to split, or a hoist that lowers the peak by itself. On a large graph the time limit
  // may end this search; regions that are not found by then are not tried.
  bool is_anything_proposed() {
    const Graph& graph = problem_.graph;
    const Device& device = question_.prices.device_or_default();
    const CostTable* costs = question_.prices.table.get();
    const auto stops = [&] {
      const bool over = limits_.over();
      is_cut_ = is_cut_ || over;
      return over;
    };
    if (problem_.techniques.split && !rewrite::propose(graph, stops).empty()) return true;
    if (problem_.techniques.substitute && !stops()) {
      const TransformedGraph now = apply_transforms(graph, {});
      const PartPricer pricer(now.graph, device, costs);
      if (!rewrite::substitutions(now, pricer, stops).empty()) return true;
    }
    if (!problem_.techniques.hoist || stops()) return false;
    const Applied base = rewrite::hoisted(graph, device, costs);
    if (base.transforms.empty() || stops()) return false;
    if (problem_.techniques.split && !rewrite::propose(base.now.graph, stops).empty()) return true;
    return rewrite::profile_of(base.now.graph).peak() < rewrite::profile_of(graph).peak();
  }

  // A plan can be as short as the sum of the ops of its graph.
  Transforms substituted(const Transforms& given, rewrite::Taken taken) {
    const auto made = with_substitutes(question_, limits_, given, taken);
    least_ = std::min(least_, made->now.graph.least_time());
    return made->transforms;
  }

  // Plans the winner with more and with fewer parts, as long as that wins. Six parts may lose to
  // eight and five win, because of wave quantization, so one miss does not end the search.
  void tune(const Idea& won) {
    const std::vector<std::int64_t> numbers = rewrite::parts_for(won.region.slices);
    const auto at = std::ranges::find(numbers, won.parts) - numbers.begin();
    for (const std::ptrdiff_t step : {-1, 1}) {
      bool better = false;
      int misses = 0;
      for (auto next = at + step; next >= 0 && next < std::ssize(numbers); next += step) {
        if (is_time_up()) return;
        Idea idea = won;
        idea.parts = numbers[static_cast<std::size_t>(next)];
        const std::int64_t ops = static_cast<std::int64_t>(idea.region.ops.size());
        if (idea.parts * ops > kMostMadeOps || !ideas_.complete(idea)) break;
        if (idea.least >= duration()) continue;
        run_with(idea.transforms, trial_share(idea));
        if (best_transforms() == idea.transforms) {
          better = true;
          misses = 0;
        } else if (++misses == (is_scarce(idea) ? 1 : kMostMisses)) {
          break;
        }
      }
      if (better) return;
    }
  }

  Answer finish() {
    Outcome& outcome = best_.outcome;
    outcome.parts = parts_;
    outcome.history = history_;
    best_.work = limits_.work();
    if (smallest_ != Bytes::max()) outcome.smallest_peak = smallest_;
    // Runs end by themselves or at their share of the limits; the search ends at the limits.
    if (limits_.stopped() && duration() > problem_.graph.least_time())
      outcome.stopped_by = limits_.reason();
    else if (is_cut_ && by_itself(outcome.stopped_by) && duration() > problem_.graph.least_time())
      outcome.stopped_by = request_.limits.work ? StopReason::work_limit : StopReason::deadline;
    if (outcome.plan || !best_.support.yes) return std::move(best_);
    // Bounds without transforms do not hold for plans with transforms.
    const Bytes floor = always_live(problem_);
    if (outcome.status == Status::infeasible && floor <= problem_.budget) {
      outcome.note = "without transforms no plan can need less than " +
                     std::to_string(outcome.bound.peak.count()) +
                     " bytes, and none was found with those that were tried";
      outcome.status = Status::unknown;
      if (by_itself(outcome.stopped_by)) outcome.stopped_by = StopReason::gave_up;
    }
    // Parts may take less time than the whole.
    outcome.bound = {Ticks(0), floor};
    return std::move(best_);
  }

  const Question& question_;
  const Problem& problem_;  // the question's
  const Request& request_;
  const SolveTrial& solve_;
  Limits limits_;
  TransformIdeas ideas_{question_, limits_};
  bool begun_ = false, limits_stopped_ = false;
  std::atomic<bool> watcher_threw_ = false;
  bool is_cut_ = false;  // fewer candidates were tried than with larger limits
  Ticks least_ = problem_.graph.least_time();  // of all graphs that are tried
  Ticks plain_bound_;                          // of plans without transforms
  Answer best_;
  Bytes smallest_ = Bytes::max();
  Transforms smallest_transforms_;
  std::vector<Plan> known_;
  std::vector<PortfolioPart> parts_;
  std::vector<Incumbent> history_;
};

}  // namespace

bool may_transform(const Question& question) {
  const Techniques& techniques = question.problem.techniques;
  return question.transforms.empty() && question.live_limits.empty() &&
         question.problem.objective == Objective::least_time &&
         (techniques.split || techniques.hoist || techniques.substitute);
}

Answer search_transforms(const Question& question, const Request& request,
                         const SolveTrial& solve) {
  Question searched = question;
  // A link that no plan may use is worth nothing.
  if (!question.problem.techniques.offload) searched.problem.machine.reset();
  if (!searched.transform_cache)
    searched.transform_cache = std::make_shared<TransformCache>(searched.problem.graph);
  return TransformSearch(searched, request, solve).run();
}

}  // namespace lowtide::driver
