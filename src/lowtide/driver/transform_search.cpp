// Problem: choose the transforms of a plan, together with the plan.
//
// Idea: the original graph gets a short run. Then candidates are estimated, in milliseconds each:
// the time that they add, and the recomputation that the budget needs on their graph. The lists of
// transforms with the best estimates take part in a tournament (tournament.cpp): a turn of a list
// is a short run of the same solver on its graph, from the plans of its turns before. Lists near
// the best one enter later: another number of parts, since estimates cannot distinguish six parts
// from seven; substitutions; and splits on its graph, which are nested in the splits before, or
// stand beside them. A step with a barrier is also tried with its backward hoisted, since the
// barrier separates the forward from the backward. Substitutions that save time are tried in two
// sets: all of them, and those that hold no more bytes; splits are tried on the graph of the second
// set.
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
#include <limits>
#include <tuple>
#include <utility>
#include <variant>

#include "lowtide/base/error.h"
#include "lowtide/driver/least_solve.h"
#include "lowtide/driver/tournament.h"
#include "lowtide/driver/transform_ideas.h"
#include "lowtide/rewrite/profile.h"
#include "lowtide/rewrite/substitutions.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/transforms/if_legal.h"
#include "lowtide/transforms/transform_cache.h"

namespace lowtide::driver {

namespace {

// Of the limits: for the original graph, before the tournament.
constexpr double kFirstShare = 0.12;
constexpr double kFirstSolves = 2, kMostFirstShare = 0.3;  // the same, with little work

class TransformSearch final : public Contest {
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
  // What a run has come to: no plan, duration, peak; smaller is better.
  struct Result {
    std::tuple<bool, Ticks, Bytes> rank{true, Ticks::max(), Bytes::max()};
    bool is_optimal = false;
  };
  // The best result of a list in the tournament. `least`: no plan of its graph is shorter.
  struct Standing {
    Ticks least;
    Result best;
  };

  void search() {
    const bool started = std::ranges::any_of(
        request_.starts, [](const Plan& start) { return !start.transforms.empty(); });
    if (!started && !is_anything_proposed()) {
      run_with({}, 1);
      return;
    }
    plain_ = run_with({}, first_share());
    if (limits_stopped_ || !best_.support.yes) return;
    Tournament(*this).run();
    if (limits_stopped_ || limits_.stopped()) return;
    // If the best list cannot win more, the original graph may.
    const bool is_done = best_.outcome.plan && best_.outcome.bound.duration >= duration();
    const bool plain = is_done && plain_bound_ < duration();
    run_with(plain ? Transforms() : Transforms(best_transforms()), 1);
  }

  std::vector<Transforms> first() override {
    using rewrite::Taken;
    ideas_.calibrate(duration());
    std::vector<Transforms> begun;
    const auto begin_from = [&](const Transforms& transforms) {
      if (std::ranges::find(begun, transforms) == begun.end()) begun.push_back(transforms);
    };
    // Most gains come from regions of the hoisted graph, so these are tried first.
    const Transforms hoisted = with_hoist(question_);
    if (!hoisted.empty()) begin_from(substituted(hoisted, Taken::faster_and_lighter));
    begin_from(hoisted);
    begin_from({});
    for (const Plan& start : request_.starts) begin_from(start.transforms);
    std::vector<Transforms> lists{{}};
    lists.insert(lists.end(), begun.begin(), begun.end());
    lists.push_back(substituted({}, Taken::faster));
    for (Idea& idea : ideas_.best(begun, duration())) lists.push_back(std::move(idea.transforms));
    lists.push_back(substituted({}, Taken::faster_and_lighter));
    return lists;
  }

  std::vector<Transforms> near(const Contender& best) override {
    std::vector<Transforms> lists = with_other_parts(question_, best.transforms);
    for (Idea& idea : ideas_.best({best.transforms}, duration()))
      lists.push_back(std::move(idea.transforms));
    return lists;
  }

  bool enter(Contender& one) override {
    if (limits_.stopped()) return false;
    const auto applied = if_legal([&] { return apply_cached(question_, one.transforms); });
    if (!applied) return false;
    const Graph& graph = (*applied)->now.graph;
    one.ops = static_cast<double>(graph.op_count());
    limits_.spend(static_cast<std::int64_t>(graph.op_count()));
    standings_.push_back({graph.least_time(), one.transforms.empty() ? plain_ : Result()});
    return true;
  }

  bool better(const Contender& one, const Contender& other) const override {
    return standings_[one.number].best.rank < standings_[other.number].best.rank;
  }

  double work_left() const override {
    const double all = all_work();
    return all > 0 ? (1 - limits_.used()) * all : std::numeric_limits<double>::infinity();
  }

  // Passes over the lists that cannot win. What they leave goes to the others.
  bool run(std::span<Contender* const> contenders, double share) override {
    if (contenders.size() == 1) return false;  // it gets all that is left
    double rest = share;                       // of the phase
    bool any = false;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      if (limits_stopped_ || limits_.stopped()) return false;
      Standing& standing = standings_[contenders[i]->number];
      if (standing.least >= duration() || standing.best.is_optimal) continue;
      const double part = rest / static_cast<double>(contenders.size() - i);
      const Result result = run_with(contenders[i]->transforms, part / (1 - share + rest));
      rest -= part;
      any = true;
      if (result.rank <= standing.best.rank) standing.best = result;
    }
    return any;
  }

  Ticks duration() const { return best_.outcome.plan ? best_.outcome.cost.duration : Ticks::max(); }
  // A larger share if there is little work, since a smaller one gives no information.
  double first_share() const {
    const double all = all_work();
    const double ops = static_cast<double>(problem_.graph.op_count());
    return all > 0 ? std::clamp(kFirstSolves * least_solve(ops) / all, kFirstShare, kMostFirstShare)
                   : kFirstShare;
  }
  // The work that the limits allow, approximately; 0 without limits.
  double all_work() const {
    const double seconds = request_.limits.seconds.value_or(0);
    return request_.limits.work ? static_cast<double>(*request_.limits.work)
                                : seconds * request_.threads * kWorkPerSecond;
  }
  // Of the best plan, or without one of the plan with the smallest peak.
  const Transforms& best_transforms() const {
    if (best_.outcome.plan) return best_.outcome.plan->transforms;
    return smallest_transforms_;
  }

  Result run_with(const Transforms& transforms, double share) {
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
    const Outcome& outcome = answer.outcome;
    Result result;
    if (outcome.plan)
      result = {{false, outcome.cost.duration, outcome.cost.peak},
                outcome.bound.duration >= outcome.cost.duration};
    else if (outcome.smallest_peak)
      std::get<Bytes>(result.rank) = *outcome.smallest_peak;
    take(std::move(answer), transforms, seconds);
    return result;
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

  Transforms substituted(const Transforms& given, rewrite::Taken taken) {
    return with_substitutes(question_, limits_, given, taken)->transforms;
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
  bool is_cut_ = false;  // regions were not searched to the end
  Ticks plain_bound_;                          // of plans without transforms
  Result plain_;                               // of the first run, without transforms
  std::vector<Standing> standings_;            // by number of the contender
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
