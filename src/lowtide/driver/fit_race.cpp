// Problem: find, among many lists of transforms, the one with the smallest peak within a time
// limit, and that peak.
//
// Idea: the lists take part in a tournament (tournament.cpp), and each goes down separately. A
// contender begins with the unplanned step of its transformed graph, and asks for a budget one step
// below the smallest peak that it has reached. A plan that is short enough ends the solve, and
// makes the next step longer; a miss makes it shorter. Plans that took too long predict where the
// next one may be short enough. The original graph always takes part.
//
// A step is a search from the plan before, and stays near that plan. The last contender also leaps,
// if it has enough work and a step has missed: the whole portfolio gets the work of two steps for a
// longer one. After a successful leap it leaps again; after a miss come steps, each time for twice
// as long.
//
// Invariant: the peak that a contender has reached is that of a plan within the time limit.
//
// Loses: if the best contender is behind for long.
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
constexpr double kLeapShare = 0.5, kLeapSolves = 6;  // of a phase; the least work, in solves
// Shares of a budget.
constexpr double kMostStep = 0.2, kFirstStep = 0.02, kLeastStep = 0.002;
// Shares of the remaining limits, since both steps take their share of them.
constexpr double kIdeasShare = 0.2, kSubstitutesShare = 0.5;
constexpr std::size_t kMostRemade = 100'000;  // ops, to try one list of substitutions
constexpr double kIdeasAt = 0.7;              // of the smallest peak so far

// The descent of one list.
struct Descent {
  Frontier own = {};
  double step = kMostStep, leap = 2 * kFirstStep;  // relative to the smallest peak
  Bytes asked = {};                                // the budget of the last turn
  std::uint64_t turns = 0;
  bool begun = false;  // it has reached some peak

  Bytes peak(Ticks limit) const {
    const Frontier::Entry* found = own.smallest(limit);
    return found == nullptr ? Bytes::max() : found->needs();
  }
  // Down to where the line to the next plan that takes too long crosses the time limit. Memory gets
  // more expensive as it shrinks, so there mostly is a plan there.
  std::optional<double> step_to_limit(Ticks limit) const {
    const Frontier::Entry *fits = own.smallest(limit), *next = nullptr;
    for (const Frontier::Entry& entry : own.entries())
      if (fits != nullptr && entry.needs() < fits->needs()) next = &entry;
    if (next == nullptr) return std::nullopt;
    const auto part = [](auto less, auto of) {
      return static_cast<double>(less.count()) / static_cast<double>(of.count());
    };
    return part(fits->needs() - next->needs(), fits->needs()) *
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
    const Frontier::Entry* found = descents_[one.number].own.smallest(limit_);
    return {found->needs(), found->cost.duration};
  }
  bool begin(Contender& contender);
  Transforms substituted(const Transforms& given, rewrite::Taken taken);
  std::vector<Transforms> ideas_on(const std::vector<Transforms>& begun, Bytes budget);
  SweepTask next_turn(const Contender& one, Descent& descent, bool leap) const;
  void use_idle_threads(const Contender& one, std::vector<SweepTask>& tasks) const;
  // Returns whether the contender has reached the budget that it asked for.
  bool take_turn(Descent& descent, bool leap) const;

  Sweep& sweep_;
  const Ticks limit_;
  const std::function<void()>& told_;
  const double rest_;             // share of the remaining work for later stages
  std::deque<Descent> descents_;  // by number of the contender
  // The last contender leaps when at most this much is left. And the length of the steps after a
  // missed leap, relative to the leap.
  double leap_at_ = std::numeric_limits<double>::infinity(), pause_ = 1;
};

bool Race::enter(Contender& one) {
  return !over() && if_legal([&] { return begin(one); }).value_or(false);
}

// Returns false if none of the contender's first plans keeps the time limit.
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
    descent.own.add(
        sweep_.measured({verdict.cost, std::make_shared<const Plan>(std::move(own)), "given"}));
  if (descent.peak(limit_) == Bytes::max()) return false;
  descents_.push_back(std::move(descent));
  return true;
}

// The lighter set is made once for each substitution, which takes seconds for long lists on large
// graphs. Then only the sets that the sweep has found anyway are tried.
Transforms Race::substituted(const Transforms& given, rewrite::Taken taken) {
  if (sweep_.faster().size() * sweep_.graph().op_count() > kMostRemade) return given;
  Limits part(sweep_.limits().remaining(kSubstitutesShare));
  auto made = with_substitutes(sweep_.question(Bytes::max()), part, given, taken)->transforms;
  sweep_.limits().spend_all(part.work());
  return made;
}

// The lists that differ most come first, since there may be work for a few only.
std::vector<Transforms> Race::first() {
  using rewrite::Taken;
  const Transforms hoisted = with_hoist(sweep_.question(Bytes::max())),
                   lighter = substituted(hoisted, Taken::faster_and_lighter);
  // Of the splits that are known from the start, some spread over all, the smallest peak first.
  std::vector<Transforms> splits, ideas;
  for (const Frontier::Entry& entry : sweep_.known().entries())
    if (entry.cost.duration <= limit_ && !entry.plan->transforms.empty() &&
        std::ranges::find(splits, entry.plan->transforms) == splits.end())
      splits.push_back(entry.plan->transforms);
  std::vector<Transforms> begun{lighter};
  if (lighter != hoisted) begun.push_back(hoisted);
  const double at =
      kIdeasAt * static_cast<double>(sweep_.known().smallest(limit_)->needs().count());
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
  // Constructive solvers make the same plans again: after them the search alone gets further.
  if (!leap && descent.begun) {
    task.solver = sweep_.improving();
    task.options = search_options(
        descent.turns,
        {.brief = true, .link = sweep_.question(descent.asked).problem.machine.has_value()});
  }
  ++descent.turns;
  return task;
}

// A search has one thread. With a time limit the others take longer steps.
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
      leap_at_ = 0;  // the portfolio cannot find more there
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
