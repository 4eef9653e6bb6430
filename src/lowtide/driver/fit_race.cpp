// Problem: of many lists of transforms, with which one is the smallest peak within a time limit,
// and how small is it?
//
// Idea: each list is a contender that goes down by itself. It begins with the own order of the
// graph that it makes, and asks for a budget a step below the smallest peak that it has reached; a
// plan that is short enough ends the solve, and the next step is longer; a miss shortens it. Plans
// that took too long tell where the next one may be short enough. The graph as it is always is one
// of the contenders. All get as much work in a phase; then those with the smaller peaks go on with
// twice the work, until one is left. After the first phases lists that are near the best one enter:
// with more parts and with fewer, with another transform behind, with substitutions. Where there is
// little work, few begin, since a turn that is too short says nothing.
//
// A step is a search from the plan before, which stays near that. The last contender also leaps,
// where there is enough work for it and a step has missed: the whole portfolio gets as much as two
// steps for one that is longer. While it reaches what it asks for it goes on; after a miss come
// steps, for twice as long each time.
//
// Source: successive halving (Jamieson and Talwalkar, AISTATS 2016), over budgets instead of
// losses.
//
// Invariant: what a contender has reached is a plan that keeps the time limit.
//
// Loses: where the best contender needs long before it is ahead.
#include "lowtide/driver/fit_race.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/driver/auto/recipes.h"
#include "lowtide/driver/least_solve.h"
#include "lowtide/driver/transform_ideas.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/sim/verify.h"

namespace lowtide::driver {

namespace {

constexpr std::size_t kContenders = 12, kEntrants = 3;
constexpr int kPhases = 5, kTurns = 4, kMostTurns = 40;  // turns: of a phase
constexpr int kMostSteps = 4;                            // at a time
constexpr double kLeapShare = 0.5, kLeapSolves = 6;      // of a phase, and worth of work at least
constexpr int kEnterUntil = 2;                           // phases
// Of a budget.
constexpr double kMostStep = 0.2, kFirstStep = 0.02, kLeastStep = 0.002;
// Of what is left: of these limits both take parts themselves.
constexpr double kIdeasShare = 0.2, kSubstitutesShare = 0.5;
constexpr std::size_t kMostRemade = 100'000;  // ops, to look at one list of substitutions
constexpr double kIdeasAt = 0.7;              // of the smallest peak so far

struct Contender {
  Transforms transforms;
  double ops = 0;  // of the graph that they make
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

class Race {
 public:
  Race(Sweep& sweep, Ticks time_limit, double share, const std::function<void()>& told)
      : sweep_(sweep),
        limit_(time_limit),
        told_(told),
        all_(share * sweep.work_left()),
        rest_(sweep.work_left() - all_) {}

  void run() {
    enter_first();
    if (contenders_.empty()) return;
    most_ = most();
    for (int phase = 0; phase < kPhases && !contenders_.empty(); ++phase) {
      const auto few = std::max<std::size_t>(1, most_ >> phase);
      if (phase > 0) sort();
      keep(few);
      if (phase > 0 && phase <= kEnterUntil) enter_more();
      const double until = rest_ + all_ * (kPhases - phase - 1) / kPhases;
      if (!run_phase(until)) return;
    }
    // Small graphs are soon as far down as they go.
    while (!contenders_.empty() && !over() && sweep_.work_left() > rest_) {
      sort();
      keep(1);
      enter_more();
      if (contenders_.size() == 1 || !run_phase(rest_)) return;
    }
  }

 private:
  // So many that each gets enough work in a turn of the first phase.
  std::size_t most() const {
    const double times = all_ / kPhases / kTurns / least_turn();
    return static_cast<std::size_t>(std::clamp(times * static_cast<double>(contenders_.size()), 2.0,
                                               static_cast<double>(kContenders)));
  }
  // Of all contenders together.
  double least_turn() const {
    double work = 0;
    for (const Contender& one : contenders_) work += least_solve(one.ops);
    return work;
  }
  bool over() const { return sweep_.reason() != StopReason::finished; }
  void enter(const Transforms& transforms);
  void enter_first();
  void enter_more();
  std::vector<Transforms> ideas_on(const std::vector<Transforms>& begun, Bytes budget);
  void sort();  // the best first
  void keep(std::size_t most);
  bool run_phase(double until);
  SweepTask next_turn(Contender& one, bool leap) const;
  void use_idle_threads(std::vector<SweepTask>& tasks) const;
  bool take_turn(Contender& one, bool leap) const;  // whether it has reached what it asked for
  Transforms substituted(const Transforms& given, rewrite::Taken taken);

  Sweep& sweep_;
  const Ticks limit_;
  const std::function<void()>& told_;
  const double all_, rest_;  // of the work that is left: for this, and for what comes after it
  std::vector<Contender> contenders_;
  std::size_t most_ = 0;  // in the first phase
  // The last one leaps when no more than this is left; and how much longer than a leap that has
  // missed it takes steps after it.
  double leap_at_ = std::numeric_limits<double>::infinity(), pause_ = 1;
  std::vector<Transforms> seen_;
};

void Race::enter(const Transforms& transforms) {
  if (over() || std::ranges::find(seen_, transforms) != seen_.end()) return;
  seen_.push_back(transforms);
  try {
    const Problem problem = sweep_.problem(Bytes::max());
    const auto applied = apply_cached(problem, transforms);
    const TransformedGraph& made = applied->now;
    sweep_.limits().spend_all(static_cast<std::int64_t>(made.graph.op_count()));
    Contender one{.transforms = transforms, .ops = static_cast<double>(made.graph.op_count())};
    for (const Frontier::Entry& entry : sweep_.known().entries())
      if (entry.plan->transforms == transforms) one.own.add(entry);
    Plan own = on_original(made, transforms,
                           plan_from_events(made.graph, own_events(made.graph), problem.machine));
    if (const Verdict verdict = verify(problem, own); verdict.ok)
      one.own.add({verdict.cost, std::make_shared<const Plan>(std::move(own)), "given"});
    if (one.peak(limit_) < Bytes::max()) contenders_.push_back(std::move(one));
  } catch (const InputError&) {  // refused as a whole
  } catch (const OverflowError&) {
  }
}

// What is to be lighter is made once for each substitution: of long lists on large graphs that
// takes seconds. Then only those that the sweep has found anyway are tried.
Transforms Race::substituted(const Transforms& given, rewrite::Taken taken) {
  if (sweep_.faster().size() * sweep_.problem(Bytes::max()).graph.op_count() > kMostRemade)
    return given;
  Limits part(sweep_.limits().remaining(kSubstitutesShare));
  auto made = with_substitutes(sweep_.problem(Bytes::max()), part, given, taken)->transforms;
  sweep_.limits().spend_all(part.work());
  return made;
}

// Those that differ most come first, since there may be work for a few alone.
void Race::enter_first() {
  using rewrite::Taken;
  const Problem problem = sweep_.problem(Bytes::max());
  const Transforms hoisted = with_hoist(problem),
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
  enter({});
  enter(sweep_.faster());
  for (std::size_t i = 0;
       i < std::max(splits.size(), ideas.size()) && contenders_.size() < kContenders; ++i) {
    if (i < splits.size()) enter(splits[i]);
    if (i < ideas.size()) enter(ideas[i]);
  }
  enter(substituted({}, Taken::faster_and_lighter));
}

std::vector<Transforms> Race::ideas_on(const std::vector<Transforms>& begun, Bytes budget) {
  const Problem problem = sweep_.problem(budget);
  Limits part(sweep_.limits().remaining(kIdeasShare));
  TransformIdeas ideas(problem, part);
  std::vector<Transforms> found;
  for (Idea& idea : ideas.best(begun, limit_)) found.push_back(std::move(idea.transforms));
  sweep_.limits().spend_all(part.work());
  return found;
}

// They ask for what the best one has reached.
void Race::enter_more() {
  const Transforms best = contenders_.front().transforms;
  const std::size_t before = contenders_.size();
  enter(substituted(best, rewrite::Taken::faster));
  for (const Transforms& other : with_other_parts(sweep_.problem(Bytes::max()), best)) enter(other);
  for (const Transforms& idea : ideas_on({best}, contenders_.front().peak(limit_))) enter(idea);
  if (contenders_.size() > before + kEntrants) contenders_.resize(before + kEntrants);
  const auto least = static_cast<double>(contenders_.front().peak(limit_).count());
  for (std::size_t i = before; i < contenders_.size(); ++i)
    contenders_[i].step = std::clamp(
        1 - least / static_cast<double>(contenders_[i].peak(limit_).count()), kLeastStep, 0.9);
}

void Race::sort() {
  std::ranges::stable_sort(contenders_, {}, [&](const Contender& one) {
    const Frontier::Entry* found = one.own.smallest(limit_);
    return std::pair(found->cost.peak, found->cost.duration);
  });
  for (Contender& one : contenders_)
    one.step = std::clamp(
        std::min(2 * one.step, std::max(one.step, one.step_to_limit(limit_).value_or(kMostStep))),
        kFirstStep, kMostStep);
}

// Of one region in different numbers of parts no more than half, since they do about as well.
void Race::keep(std::size_t most) {
  const auto region = [](const Contender& one) {
    const auto* split =
        one.transforms.empty() ? nullptr : std::get_if<Split>(&one.transforms.back());
    return split == nullptr ? std::vector<OpId>() : split->ops;
  };
  std::vector<Contender> kept, rest;
  for (Contender& one : contenders_) {
    const auto alike = static_cast<std::size_t>(std::ranges::count(kept, region(one), region));
    (2 * alike >= most + 1 ? rest : kept).push_back(std::move(one));
  }
  std::ranges::move(rest, std::back_inserter(kept));
  if (kept.size() > most) kept.resize(most);
  contenders_ = std::move(kept);
}

SweepTask Race::next_turn(Contender& one, bool leap) const {
  const auto high = one.peak(limit_);
  const double down = 1 - (leap ? one.leap : one.step);
  one.asked = std::max(
      sweep_.known().floor(),
      std::min(high - Bytes(1),
               Bytes(static_cast<std::int64_t>(down * static_cast<double>(high.count())))));
  SweepTask task{
      .budget = one.asked, .enough = limit_, .transforms = one.transforms, .own = &one.own};
  // What constructive parts make does not change: after them the search alone goes further; and
  // where there is too little work for them, from the own order too.
  if (!leap && (one.begun || one.turns % 2 == 1)) {
    task.solver = sweep_.improving();
    task.options = search_options(
        one.turns, {.brief = true, .link = sweep_.problem(one.asked).machine.has_value()});
  }
  ++one.turns;
  return task;
}

// A search has one thread. Under a clock the others take longer steps.
void Race::use_idle_threads(std::vector<SweepTask>& tasks) const {
  if (!sweep_.by_clock()) return;
  Contender longer = contenders_.front();
  for (int i = 1; i < std::min(sweep_.threads(), kMostSteps); ++i) {
    longer.step = std::min(1.5 * longer.step, kMostStep);
    SweepTask task = next_turn(longer, false);
    if (task.solver.empty() || task.budget == tasks.back().budget) return;
    task.own = tasks.front().own;
    tasks.push_back(std::move(task));
  }
}

bool Race::take_turn(Contender& one, bool leap) const {
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

bool Race::run_phase(double until) {
  const double all = sweep_.work_left() - until;
  bool leap = false;
  for (int i = 0; i < kMostTurns; ++i) {
    const double left = sweep_.work_left();
    if (std::isfinite(left) ? left <= until : i == kTurns) return true;
    std::vector<SweepTask> tasks;
    for (Contender& one : contenders_) tasks.push_back(next_turn(one, leap));
    if (contenders_.size() == 1 && !leap) use_idle_threads(tasks);
    const double turn = leap ? std::min(kLeapShare * all, left - until) : all / kTurns;
    const double share =
        std::isfinite(left) ? std::min(1.0, std::max(turn, least_turn()) / left) : 1;
    if (!sweep_.round(tasks, share)) {
      if (!leap || over()) return !over();
      leap_at_ = 0;  // all that the portfolio finds there is known
      leap = false;
      continue;
    }
    bool missed = true;
    for (Contender& one : contenders_) missed = !take_turn(one, leap) && missed;
    const double now = sweep_.work_left();
    if (leap && missed) {
      leap_at_ = now - pause_ * (left - now);
      pause_ *= 2;
    }
    leap = contenders_.size() == 1 && std::isfinite(now) &&
           kLeapShare * all >= kLeapSolves * least_turn() &&
           (leap ? !missed : missed && now <= leap_at_);
    told_();
  }
  return true;
}

}  // namespace

void race(Sweep& sweep, Ticks time_limit, double share, const std::function<void()>& told) {
  Race(sweep, time_limit, share, told).run();
}

}  // namespace lowtide::driver
