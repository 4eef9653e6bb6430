// Problem: of many lists of transforms, with which one is the smallest peak within a time limit,
// and how small is it?
//
// Idea: the lists take part in a tournament (tournament.cpp), in which each goes down by itself. It
// begins with the own order of the graph that it makes, and asks for a budget a step below the
// smallest peak that it has reached; a plan that is short enough ends the solve, and the next step
// is longer; a miss shortens it. Plans that took too long tell where the next one may be short
// enough. The graph as it is always takes part.
//
// A step is a search from the plan before, which stays near that. The last contender also leaps,
// where there is enough work for it and a step has missed: the whole portfolio gets as much as two
// steps for one that is longer. While it reaches what it asks for it goes on; after a miss come
// steps, for twice as long each time.
//
// Invariant: what a contender has reached is a plan that keeps the time limit.
//
// Loses: where the best contender needs long before it is ahead.
#include "lowtide/driver/fit_race.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "lowtide/driver/auto/recipes.h"
#include "lowtide/driver/least_solve.h"
#include "lowtide/driver/split_orders.h"
#include "lowtide/driver/tournament.h"
#include "lowtide/driver/transform_ideas.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"
#include "lowtide/transforms/if_legal.h"

namespace lowtide::driver {

namespace {

constexpr int kTurns = 4, kMostTurns = 40;           // of a phase
constexpr int kMostSteps = 4;                        // at a time
constexpr double kLeapShare = 0.5, kLeapSolves = 6;  // of a phase, and worth of work at least
// Of a budget.
constexpr double kMostStep = 0.2, kFirstStep = 0.02, kLeastStep = 0.002;
// Of what is left: of these limits both take parts themselves.
constexpr double kIdeasShare = 0.2, kSubstitutesShare = 0.5;
constexpr std::size_t kMostRemade = 100'000;  // ops, to look at one list of substitutions
constexpr double kIdeasAt = 0.7;              // of the smallest peak so far

// How far down a list has come.
struct Descent {
  Frontier own = {};
  double step = kMostStep, leap = 2 * kFirstStep;  // down, of the smallest peak
  Bytes asked = {};                                // in the last turn
  std::uint64_t turns = 0;
  bool begun = false;  // it has reached something

  Bytes peak(Ticks limit) const {
    const Frontier::Entry* found = own.smallest(limit);
    return found == nullptr ? Bytes::max() : found->cost.peak;
  }
  // Down to where the line to the next plan that takes too long crosses the limit. Less memory
  // costs more and more time, so there mostly is a plan there.
  std::optional<double> step_to_limit(Ticks limit) const {
    const Frontier::Entry *fits = own.smallest(limit), *next = nullptr;
    for (const Frontier::Entry& entry : own.entries())
      if (fits != nullptr && entry.cost.peak < fits->cost.peak) next = &entry;
    if (next == nullptr) return std::nullopt;
    const auto part = [](auto less, auto of) {
      return static_cast<double>(less.count()) / static_cast<double>(of.count());
    };
    return part(fits->cost.peak - next->cost.peak, fits->cost.peak) *
           part(limit - fits->cost.duration, next->cost.duration - fits->cost.duration);
  }
};

class Race final : public Contest {
 public:
  Race(Sweep& sweep, Ticks time_limit, double share, const std::function<void()>& told)
      : sweep_(sweep),
        limit_(time_limit),
        told_(told),
        rest_(share < 1 ? (1 - share) * sweep.work_left() : 0) {}

  std::vector<Transforms> first() override;
  std::vector<Transforms> near(const Contender& best) override;
  bool enter(Contender& contender) override;
  bool better(const Contender& one, const Contender& other) const override {
    return rank(one) < rank(other);
  }
  bool run(std::span<Contender* const> contenders, double share) override;
  double work_left() const override { return sweep_.work_left() - rest_; }

 private:
  bool over() const { return sweep_.reason() != StopReason::finished; }
  std::pair<Bytes, Ticks> rank(const Contender& one) const {
    const Cost& cost = descents_[one.number].own.smallest(limit_)->cost;
    return {cost.peak, cost.duration};
  }
  bool begin(Contender& contender);
  Transforms substituted(const Transforms& given, rewrite::Taken taken);
  std::vector<Transforms> ideas_on(const std::vector<Transforms>& begun, Bytes budget);
  SweepTask next_turn(const Contender& one, Descent& descent, bool leap) const;
  void use_idle_threads(const Contender& one, std::vector<SweepTask>& tasks) const;
  bool take_turn(Descent& descent, bool leap) const;  // whether it has reached what it asked for

  Sweep& sweep_;
  const Ticks limit_;
  const std::function<void()>& told_;
  const double rest_;             // of the work that is left: for what comes after this
  std::deque<Descent> descents_;  // by the contenders' numbers
  // The last one leaps when no more than this is left; and how much longer than a leap that has
  // missed it takes steps after it.
  double leap_at_ = std::numeric_limits<double>::infinity(), pause_ = 1;
};

bool Race::enter(Contender& one) {
  return !over() && if_legal([&] { return begin(one); }).value_or(false);
}

// False where no plan that it begins with keeps the time limit.
bool Race::begin(Contender& one) {
  const Question question = sweep_.question(Bytes::max());
  const auto applied = apply_cached(question, one.transforms);
  const auto ops = static_cast<std::int64_t>(applied->now.graph.op_count());
  one.ops = static_cast<double>(ops);
  sweep_.limits().spend_all(ops);
  Descent descent;
  for (const Frontier::Entry& entry : sweep_.known().entries())
    if (entry.plan->transforms == one.transforms) descent.own.add(entry);
  Plan own = own_order_plan(*applied, question.problem.machine);
  if (const Verdict verdict = verify(question, own); verdict.ok)
    descent.own.add({verdict.cost, std::make_shared<const Plan>(std::move(own)), "given"});
  if (descent.peak(limit_) == Bytes::max()) return false;
  descents_.push_back(std::move(descent));
  return true;
}

// What is to be lighter is made once for each substitution: of long lists on large graphs that
// takes seconds. Then only those that the sweep has found anyway are tried.
Transforms Race::substituted(const Transforms& given, rewrite::Taken taken) {
  if (sweep_.faster().size() * sweep_.graph().op_count() > kMostRemade) return given;
  Limits part(sweep_.limits().remaining(kSubstitutesShare));
  auto made = with_substitutes(sweep_.question(Bytes::max()), part, given, taken)->transforms;
  sweep_.limits().spend_all(part.work());
  return made;
}

// Those that differ most come first, since there may be work for a few alone.
std::vector<Transforms> Race::first() {
  using rewrite::Taken;
  const Transforms hoisted = with_hoist(sweep_.question(Bytes::max())),
                   lighter = substituted(hoisted, Taken::faster_and_lighter);
  // Of the splits that are known from the start, some from all over, the smallest peak first.
  std::vector<Transforms> splits, ideas;
  for (const Frontier::Entry& entry : sweep_.known().entries())
    if (entry.cost.duration <= limit_ && !entry.plan->transforms.empty() &&
        std::ranges::find(splits, entry.plan->transforms) == splits.end())
      splits.push_back(entry.plan->transforms);
  std::vector<Transforms> begun{lighter};
  if (lighter != hoisted) begun.push_back(hoisted);
  const double at =
      kIdeasAt * static_cast<double>(sweep_.known().smallest(limit_)->cost.peak.count());
  ideas = ideas_on(begun, Bytes(static_cast<std::int64_t>(at)));
  std::vector<Transforms> lists{{}, sweep_.faster()};
  for (std::size_t i = 0; i < std::max(splits.size(), ideas.size()); ++i) {
    if (i < splits.size()) lists.push_back(splits[i]);
    if (i < ideas.size()) lists.push_back(ideas[i]);
  }
  lists.push_back(substituted({}, Taken::faster_and_lighter));
  return lists;
}

std::vector<Transforms> Race::ideas_on(const std::vector<Transforms>& begun, Bytes budget) {
  const Question question = sweep_.question(budget);
  Limits part(sweep_.limits().remaining(kIdeasShare));
  TransformIdeas ideas(question, part);
  std::vector<Transforms> found;
  for (Idea& idea : ideas.best(begun, limit_)) found.push_back(std::move(idea.transforms));
  sweep_.limits().spend_all(part.work());
  return found;
}

std::vector<Transforms> Race::near(const Contender& best) {
  std::vector<Transforms> lists{substituted(best.transforms, rewrite::Taken::faster)};
  std::ranges::move(with_other_parts(sweep_.question(Bytes::max()), best.transforms),
                    std::back_inserter(lists));
  std::ranges::move(ideas_on({best.transforms}, rank(best).first), std::back_inserter(lists));
  return lists;
}

SweepTask Race::next_turn(const Contender& one, Descent& descent, bool leap) const {
  const auto high = descent.peak(limit_);
  const double down = 1 - (leap ? descent.leap : descent.step);
  descent.asked = std::max(
      sweep_.known().floor(),
      std::min(high - Bytes(1),
               Bytes(static_cast<std::int64_t>(down * static_cast<double>(high.count())))));
  SweepTask task{
      .budget = descent.asked, .enough = limit_, .transforms = one.transforms, .own = &descent.own};
  // What constructive parts make does not change: after them the search alone goes further.
  if (!leap && descent.begun) {
    task.solver = sweep_.improving();
    task.options = search_options(
        descent.turns,
        {.brief = true, .link = sweep_.question(descent.asked).problem.machine.has_value()});
  }
  ++descent.turns;
  return task;
}

// A search has one thread. Under a clock the others take longer steps.
void Race::use_idle_threads(const Contender& one, std::vector<SweepTask>& tasks) const {
  if (!sweep_.by_clock()) return;
  Descent longer = descents_[one.number];
  for (int i = 1; i < std::min(sweep_.threads(), kMostSteps); ++i) {
    longer.step = std::min(1.5 * longer.step, kMostStep);
    SweepTask task = next_turn(one, longer, false);
    if (task.solver.empty() || task.budget == tasks.back().budget) return;
    task.own = tasks.front().own;
    tasks.push_back(std::move(task));
  }
}

bool Race::take_turn(Descent& one, bool leap) const {
  const bool reached = one.peak(limit_) <= one.asked;
  one.begun = one.begun || reached;
  double& step = leap ? one.leap : one.step;
  const double other = reached ? 1.5 * step : step / 2;
  const double to_limit = one.step_to_limit(limit_).value_or(other);
  if (leap)
    step = reached ? std::max(2 * to_limit, kFirstStep) : 0.9 * to_limit;
  else if (reached)
    step = other;
  else
    step = std::max(other / 4, std::min(to_limit, other));
  step = std::clamp(step, one.begun ? kLeastStep : kFirstStep, kMostStep);
  return reached;
}

bool Race::run(std::span<Contender* const> contenders, double share) {
  if (over()) return false;
  const double all = share * (sweep_.work_left() - rest_), until = sweep_.work_left() - all;
  double least = 0;  // for a turn of all of them
  for (const Contender* one : contenders) least += least_solve(one->ops);
  bool leap = false;
  for (int i = 0; i < kMostTurns; ++i) {
    const double left = sweep_.work_left();
    if (std::isfinite(left) ? left <= until : i == kTurns) return true;
    std::vector<SweepTask> tasks;
    for (const Contender* one : contenders)
      tasks.push_back(next_turn(*one, descents_[one->number], leap));
    if (contenders.size() == 1 && !leap) use_idle_threads(*contenders.front(), tasks);
    const double turn = leap ? std::min(kLeapShare * all, left - until) : all / kTurns;
    const double part = std::isfinite(left) ? std::min(1.0, std::max(turn, least) / left) : 1;
    if (!sweep_.round(tasks, part)) {
      if (!leap || over()) return !over();
      leap_at_ = 0;  // all that the portfolio finds there is known
      leap = false;
      continue;
    }
    bool missed = true;
    for (const Contender* one : contenders)
      missed = !take_turn(descents_[one->number], leap) && missed;
    const double now = sweep_.work_left();
    if (leap && missed) {
      leap_at_ = now - pause_ * (left - now);
      pause_ *= 2;
    }
    leap = contenders.size() == 1 && std::isfinite(now) &&
           kLeapShare * all >= kLeapSolves * least && (leap ? !missed : missed && now <= leap_at_);
    told_();
  }
  return true;
}

}  // namespace

void race(Sweep& sweep, Ticks time_limit, double share, const std::function<void()>& told) {
  Race race(sweep, time_limit, share, told);
  Tournament(race).run();
}

}  // namespace lowtide::driver
