// A few rounds, each with a share of the limits that are left.
#include "lowtide/driver/arena.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <utility>

namespace lowtide::driver {

namespace {

// For planning, of what is left: one for each round.
constexpr std::array kShares = {0.7, 0.5, 0.6, 0.9};
constexpr double kPlaceShare = 0.25;  // for placing the plans of a round
constexpr std::size_t kPlans = 8;     // that are placed in a round
// Of the shortest plan's duration: within it, plans are as good.
constexpr std::int64_t kAsGood = 1000;

struct Candidate {
  Plan plan;
  Cost cost;
};

// The latest plans of one solve, each shorter than the one before.
class Incumbents {
 public:
  // A watcher that keeps what it sees.
  solve::Watcher watch(const solve::Watcher& watcher) {
    return [this, &watcher](const solve::Progress& progress) {
      if (progress.plan != nullptr) add(*progress.plan, progress.cost);
      if (watcher) watcher(progress);
    };
  }
  void add(const Plan& plan, const Cost& cost) {
    const std::lock_guard lock(mutex_);
    if (!kept_.empty() && kept_.front().cost == cost) return;
    kept_.push_front({plan, cost});
    if (kept_.size() > kPlans) kept_.pop_back();
  }
  const std::deque<Candidate>& kept() const { return kept_; }  // the shortest first

 private:
  std::mutex mutex_;
  std::deque<Candidate> kept_;
};

class ArenaSearch {
 public:
  ArenaSearch(const solve::SolverTable& solvers, const Question& question, const Request& request,
              Bytes alignment)
      : solvers_(solvers),
        question_(question),
        request_(request),
        alignment_(alignment),
        limits_(request.limits) {}

  ArenaAnswer run() {
    for (const double share : kShares) {
      const std::optional<Bytes> excess = plan_and_place(share);
      if (!excess || limits_.over() || !next_budget(*excess)) break;
    }
    return finish();
  }

 private:
  // By how much the best plan's arena is above the budget; nothing without a plan.
  std::optional<Bytes> plan_and_place(double share) {
    Question question = question_;
    question.problem.budget = live_budget_;
    Request request = request_;
    request.limits = limits_.remaining(share);
    request.seed += rounds_;
    if (latest_) request.starts.insert(request.starts.begin(), latest_->plan);
    Incumbents incumbents;
    request.watcher = incumbents.watch(request_.watcher);
    Answer answer = solve(solvers_, question, request);
    limits_.spend_all(answer.work);
    ended_ = by_itself(answer.outcome.stopped_by);
    const std::optional<Plan> plan = answer.outcome.plan;
    const Cost cost = answer.outcome.cost;
    if (rounds_++ == 0) first_ = std::move(answer);
    if (!plan) return std::nullopt;
    incumbents.add(*plan, cost);
    latest_ = Candidate{*plan, cost};
    return place(incumbents.kept());
  }

  // Of the next round; false if there is nothing more to try.
  bool next_budget(Bytes excess) {
    if (excess <= Bytes(0)) {
      fits_ = live_budget_;
      if (!fails_) return !ended_;  // the same again
    } else {
      fails_ = live_budget_;
      if (!fits_) live_budget_ -= excess;
    }
    if (fits_) {
      const Bytes step((fails_->count() - fits_->count()) / 2);
      live_budget_ = *fits_ + step;
      return step.count() > question_.problem.budget.count() / 2000;
    }
    return live_budget_ > Bytes(0);
  }

  std::optional<Bytes> place(const std::deque<Candidate>& candidates) {
    const Ticks shortest = candidates.front().cost.duration;
    const Ticks as_good(shortest.count() + shortest.count() / kAsGood);
    const double share = kPlaceShare / static_cast<double>(candidates.size());
    std::optional<Bytes> excess;
    for (const Candidate& candidate : candidates) {
      if (found_ && candidate.cost.duration >= found_->cost.duration) continue;
      // Those that are longer are a way out, if none as good lies within the budget.
      if (candidate.cost.duration > as_good && excess && *excess <= Bytes(0)) break;
      Limits limits(limits_.remaining(share));
      layout::PlanPlacement placed = layout::place_plan(
          question_.problem.graph, candidate.plan,
          {.alignment = alignment_, .capacity = question_.problem.budget, .seed = request_.seed},
          limits);
      limits_.spend_all(limits.work());
      if (candidate.cost.duration <= as_good)
        excess = std::min(excess.value_or(Bytes::max()), placed.arena - question_.problem.budget);
      if (!smallest_ || placed.arena < *smallest_) smallest_ = placed.arena;
      if (placed.arena > question_.problem.budget) continue;
      found_ = candidate;
      placement_ = std::move(placed);
      break;
    }
    return excess;
  }

  ArenaAnswer finish() {
    ArenaAnswer result{std::move(first_), std::nullopt, std::nullopt};
    Outcome& outcome = result.answer.outcome;
    result.answer.work = limits_.work();
    if (found_) {
      outcome.plan = std::move(found_->plan);
      outcome.cost = found_->cost;
      const bool optimal = outcome.bound.duration == outcome.cost.duration;
      outcome.status = optimal ? Status::optimal : Status::feasible;
      result.placement = std::move(placement_);
    } else if (outcome.plan) {
      outcome.plan.reset();
      outcome.status = Status::unknown;
      result.smallest_arena = smallest_;
      add_note(outcome,
               "the plans found have live bytes within the budget; the smallest arena takes " +
                   std::to_string(smallest_->count()) + " bytes");
    }
    if (outcome.stopped_by == StopReason::finished && outcome.status != Status::optimal &&
        outcome.status != Status::infeasible)
      outcome.stopped_by = StopReason::gave_up;
    return result;
  }

  const solve::SolverTable& solvers_;
  const Question& question_;
  const Request& request_;
  Bytes alignment_;
  Limits limits_;
  Bytes live_budget_ = question_.problem.budget;
  std::optional<Bytes> fits_, fails_;  // live budgets: the largest, the smallest
  std::uint64_t rounds_ = 0;
  bool ended_ = false;  // the latest solve had nothing more to try
  Answer first_;        // within the whole budget: its bounds are those of the answer
  std::optional<Candidate> latest_, found_;
  std::optional<layout::PlanPlacement> placement_;
  std::optional<Bytes> smallest_;
};

}  // namespace

ArenaAnswer solve_arena(const solve::SolverTable& solvers, const Question& question,
                        const Request& request, Bytes alignment) {
  return ArenaSearch(solvers, question, request, alignment).run();
}

}  // namespace lowtide::driver
