// Problem: find the least time for each of many budgets, in the time of one solve.
//
// Idea: neighbouring budgets are nearly the same problem. A plan for one budget is a plan for every
// larger one and a start plan for the next smaller one; a bound for one budget holds for every
// smaller one. So solve both ends, then the middle, then the quarters and so on, each from the
// plans on both sides, with a share of the limits. Then the remaining limits go, in a few passes,
// to the points farthest from their bound. Points that reach it, or that are proven infeasible,
// cost nothing more. Between both stages, search the smallest budget of all, below the smallest
// peak so far: four budgets at a time, up to the largest at which nothing is found.
//
// Plans over the budget of a solve are used too: as plans for the next larger budget, and as start
// plans from which the search comes down into the budget. If the solver is `auto`, only the first
// pass runs all of it, since its constructive solvers make the same plans again. Later passes run
// the search alone, and the first and the last of them also the bounds.
//
// Invariant: the plan of a point is the best plan that any solve has found within its budget, and
// its bound is the best bound for its budget or a larger one. So the curve falls, whatever the
// solver does, and no pass makes a point worse.
//
// Loses: a run with more work is not a continuation of one with less, since every share is larger
// and the search cools down over its whole share. So single points may come out worse, mostly at
// the smallest budgets. Also against separate runs if the points have little in common, and on
// graphs so large that a short solve finds no first plan.
#include "lowtide/driver/curve.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/base/error.h"
#include "lowtide/driver/auto/recipes.h"
#include "lowtide/driver/sweep.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::driver {

namespace {

constexpr double kFirstCurve = 10;  // seconds: the limit of the first pass
constexpr int kPasses = 2;          // after the first pass, for a solver without subsolvers
// With subsolvers each pass is longer than the one before, and the shortest does this much work at
// a point.
constexpr double kGrowth = 1.4, kLeastWork = 20'000, kLeastWorkPerOp = 10;
constexpr int kMostPasses = 8;
constexpr double kProof = 1.0 / 3;  // of the share of the search at that point
constexpr int kSmallestRounds = 4;
constexpr double kSmallestShare = 0.15;  // of the limits left; a fourth in each round
constexpr std::int64_t kProbes = 4;

std::vector<Bytes> budgets_of(const CurveRequest& request) {
  if (request.from.count() < 0)
    throw InputError("from", "is negative; a budget is 0 bytes or more");
  if (request.from > request.to)
    throw InputError("from", "is beyond the other end: " + std::to_string(request.from.count()) +
                                 " bytes to " + std::to_string(request.to.count()));
  if (request.points < 2) throw InputError("points", "a curve has two or more");
  const Bytes width = request.to - request.from;
  const auto steps = static_cast<std::int64_t>(request.points - 1);
  std::vector<Bytes> budgets;
  for (std::int64_t i = 0; i <= steps; ++i)
    budgets.push_back(request.from +
                      Bytes(checked_mul_div(width.count(), i, steps, Rounding::floor)));
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

// Both ends, then the middle of each interval.
std::vector<std::vector<std::size_t>> waves_of(std::size_t count) {
  std::vector<std::vector<std::size_t>> waves{{count - 1}};
  if (count > 1) waves.front().push_back(0);
  std::vector<std::pair<std::size_t, std::size_t>> stretches{{0, count - 1}};
  while (!stretches.empty()) {
    std::vector<std::pair<std::size_t, std::size_t>> halves;
    std::vector<std::size_t> wave;
    for (const auto& [low, high] : stretches) {
      if (high - low < 2) continue;
      const std::size_t middle = low + (high - low) / 2;
      wave.push_back(middle);
      halves.emplace_back(low, middle);
      halves.emplace_back(middle, high);
    }
    // Large budgets first: they are easier, and give start plans for the others.
    std::ranges::reverse(wave);
    if (!wave.empty()) waves.push_back(std::move(wave));
    stretches = std::move(halves);
  }
  return waves;
}

class CurveRun {
 public:
  CurveRun(const solve::SolverTable& solvers, const Graph& graph, const CurveRequest& request)
      : graph_(graph),
        request_(request),
        budgets_(budgets_of(request)),
        sweep_(solvers, graph, request.terms, request.footprint, request.settings) {}

  Tradeoff run() {
    report();
    first_pass();
    find_smallest();
    refine();
    return result();
  }

 private:
  void first_pass();
  void find_smallest();
  void refine();
  bool refine(double share, std::size_t pass, bool proves);
  int passes() const;
  bool round(const std::vector<SweepTask>& tasks, double share);
  void report() const;
  double gap(Bytes budget) const;  // relative to the base duration
  Bytes smallest() const { return sweep_.known().smallest()->needs(); }
  Tradeoff result() const;

  const Graph& graph_;
  const CurveRequest& request_;
  std::vector<Bytes> budgets_;
  Sweep sweep_;
};

bool CurveRun::round(const std::vector<SweepTask>& tasks, double share) {
  const Frontier& known = sweep_.known();
  // A solver may find the best plan for a smaller budget on the way.
  const auto wanted = [&](const Cost& cost) {
    if (cost.peak < known.smallest()->cost.peak) return true;
    const auto next = std::ranges::lower_bound(budgets_, cost.peak);
    if (next == budgets_.end()) return false;
    const Frontier::Entry* best = known.best(*next);
    return best == nullptr || cost.duration < best->cost.duration;
  };
  const bool ran = sweep_.round(tasks, share, wanted);
  sweep_.known().thin([&](const Frontier::Entry& entry) {
    if (&entry == known.smallest()) return true;
    const auto next = std::ranges::lower_bound(budgets_, entry.needs());
    if (next != budgets_.begin() && known.above(*std::prev(next)) == &entry) return true;
    return next != budgets_.end() && known.best(*next) == &entry;
  });
  if (ran) report();
  return ran;
}

void CurveRun::report() const {
  if (!request_.watcher) return;
  CurveProgress progress{
      .points = budgets_.size(), .smallest = smallest(), .so_far = [this] { return result(); }};
  for (Bytes budget : budgets_) {
    progress.planned += sweep_.known().best(budget) != nullptr ? 1 : 0;
    progress.settled += sweep_.known().decided(budget) ? 1 : 0;
    progress.widest_gap = std::max(progress.widest_gap, 100 * gap(budget));
  }
  request_.watcher(progress);
}

double CurveRun::gap(Bytes budget) const {
  const Frontier::Entry* best = sweep_.known().best(budget);
  const auto base = static_cast<double>(std::max<std::int64_t>(1, graph_.total_time().count()));
  if (best == nullptr) return 0;
  return static_cast<double>((best->cost.duration - sweep_.known().bound(budget)).count()) / base;
}

void CurveRun::first_pass() {
  // However long the whole run is, a first curve comes soon.
  const double seconds = request_.settings.limits.seconds.value_or(0);
  const double part = seconds > kFirstCurve ? kFirstCurve / seconds : 1;
  const auto waves = waves_of(budgets_.size());
  for (std::size_t i = 0; i < waves.size(); ++i) {
    std::vector<SweepTask> tasks;
    std::vector<std::size_t> later;
    const auto open = [&](std::size_t at) { return !sweep_.known().decided(budgets_[at]); };
    for (std::size_t at : waves[i])
      if (open(at)) tasks.push_back({.budget = budgets_[at]});
    for (std::size_t next = i + 1; next < waves.size(); ++next)
      later.push_back(static_cast<std::size_t>(std::ranges::count_if(waves[next], open)));
    // The stages after the waves get as much again, and a half.
    later.push_back(static_cast<std::size_t>(1.5 * static_cast<double>(budgets_.size())));
    round(tasks, sweep_.share(tasks.size(), later) * part);
  }
}

void CurveRun::find_smallest() {
  // Nothing was found below it; that is no proof.
  Bytes low = sweep_.known().floor();
  for (Bytes budget : budgets_)
    if (budget < smallest()) low = std::max(low, budget);
  const std::int64_t fine = own_peak(graph_).count() / 1000;
  for (int i = 0; i < kSmallestRounds; ++i) {
    const Bytes high = smallest();
    low = std::max(low, sweep_.known().floor());
    if (high.count() - low.count() <= fine) return;
    std::vector<SweepTask> tasks;
    for (std::int64_t part = kProbes; part > 0; --part) {
      const Bytes budget =
          low + Bytes(checked_mul_div((high - low).count(), part, kProbes + 1, Rounding::floor));
      tasks.push_back({.budget = budget, .enough = Ticks::max()});
    }
    if (!round(tasks, kSmallestShare / kSmallestRounds)) return;
    for (const SweepTask& task : tasks)
      if (task.budget < smallest()) low = std::max(low, task.budget);
  }
}

int CurveRun::passes() const {
  if (!sweep_.by_parts()) return kPasses;
  const double least = kLeastWork + kLeastWorkPerOp * static_cast<double>(graph_.op_count());
  double left = sweep_.work_left() / static_cast<double>(budgets_.size() + 1) - least;
  int passes = 1;
  for (double next = least * kGrowth; passes < kMostPasses && left >= next; next *= kGrowth) {
    left -= next;
    ++passes;
  }
  return passes;
}

void CurveRun::refine() {
  const int count = passes();
  const double growth = sweep_.by_parts() ? kGrowth : 1;
  double rest = 1;  // the remaining passes from this one on, in units of this one
  for (int i = 1; i < count; ++i) rest = rest * growth + 1;
  for (int i = 0; i < count; ++i) {
    if (!refine(1 / rest, static_cast<std::size_t>(i), i == 0 || i == count - 1)) return;
    rest = (rest - 1) / growth;
  }
}

bool CurveRun::refine(double share, std::size_t pass, bool proves) {
  std::vector<Bytes> budgets = budgets_;
  budgets.push_back(smallest());
  double sum = 0;
  for (Bytes budget : budgets) sum += gap(budget);
  const double mean = std::max(sum / static_cast<double>(budgets.size()), 1e-9);
  // Points without a plan count more than their gap, most of all the largest such budget: it is the
  // easiest, and its plan would be a start plan for the others.
  Bytes next(-1);
  for (Bytes budget : budgets)
    if (budget < smallest() && !sweep_.known().decided(budget)) next = std::max(next, budget);
  const bool swaps = request_.terms.machine && request_.terms.techniques.offload;
  std::vector<SweepTask> tasks;
  for (Bytes budget : budgets) {
    double weight = mean / 4 + gap(budget);
    if (sweep_.known().best(budget) == nullptr) weight = budget == next ? 8 * mean : mean;
    tasks.push_back({.budget = budget, .weight = weight});
    if (!sweep_.by_parts()) continue;
    const Frontier::Entry* best = sweep_.known().best(budget);
    if (sweep_.open()) {
      // The first of these passes looks for transforms once more, with all plans so far.
      if (pass == 0 || best == nullptr) continue;
      tasks.back().transforms = best->plan->transforms;
    }
    tasks.back().solver = sweep_.improving();
    tasks.back().options = search_options(pass, {.link = swaps});
    if (proves && !sweep_.open())
      tasks.push_back({.budget = budget, .weight = kProof * weight, .solver = sweep_.proving()});
  }
  return round(tasks, share);
}

Tradeoff CurveRun::result() const {
  Tradeoff tradeoff;
  tradeoff.terms = request_.terms;
  tradeoff.footprint = request_.footprint.kind;
  if (request_.footprint.kind == Footprint::reserved)
    tradeoff.allocator = layout::to_string(request_.footprint.allocator);
  tradeoff.own_peak = own_peak(graph_);
  for (Bytes budget : budgets_) tradeoff.points.push_back(sweep_.point(budget));
  tradeoff.smallest = sweep_.point(smallest());
  tradeoff.floor = sweep_.known().floor();
  tradeoff.stopped_by = sweep_.stopped_by();
  return tradeoff;
}

}  // namespace

Tradeoff curve(const solve::SolverTable& solvers, const Graph& graph, const CurveRequest& request) {
  return CurveRun(solvers, graph, request).run();
}

}  // namespace lowtide::driver
