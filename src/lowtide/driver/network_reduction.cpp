#include "lowtide/driver/network_reduction.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lowtide/driver/network_bound.h"
#include "lowtide/driver/overlap.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::driver {

namespace {

// Of moving the network ops of an answer's plans; at a deadline so much later.
constexpr double kLeastSeconds = 0.03;
constexpr std::int64_t kMostMoves = 30'000'000;

bool network_runs_once(const Graph& graph) {
  for (const OpId op : AllIds<OpId>(graph.op_count()))
    if (graph.on_network(op) && graph.recomputable(op)) return false;
  return true;
}

Problem on_compute_lane_alone(const Problem& original, const Graph& graph) {
  Problem problem = with_graph(original, graph);
  if (problem.time_limit) {
    const Ticks hidden = graph.total_time() - own_duration(original.graph);
    problem.time_limit =
        *problem.time_limit > Ticks::max() - hidden ? Ticks::max() : *problem.time_limit + hidden;
  }
  return problem;
}

}  // namespace

NetworkReduction::NetworkReduction(const Problem& original, const LimitSettings& limits)
    : original_(original),
      limits_(limits),
      least_(network_bound(original.graph, original.order)),
      runs_once_(network_runs_once(original.graph)),
      graph_(Graph(original.graph).without_network_lane()),
      problem_(on_compute_lane_alone(original, graph_)) {}

Ticks NetworkReduction::original_bound(Ticks reduced) const {
  if (original_.machine) return least_;
  // If network ops may be recomputed: a plan takes at least the longer of its two lanes, and so at
  // least half of their sum.
  const Ticks computing = runs_once_ ? reduced - original_.graph.network_time()
                                     : Ticks(reduced.count() / 2 + reduced.count() % 2);
  return std::max(least_, computing);
}

bool NetworkReduction::within(const Cost& cost) const {
  return !original_.time_limit || cost.duration <= *original_.time_limit;
}

bool NetworkReduction::better(const Cost& a, const Cost& b) const {
  if (original_.objective == Objective::least_memory)
    return std::tie(a.peak, a.duration) < std::tie(b.peak, b.duration);
  return std::tie(a.duration, a.peak) < std::tie(b.duration, b.peak);
}

bool NetworkReduction::take(const Plan& plan, const solve::Progress& progress) {
  if (last_reduced_cost_ == progress.cost) return false;
  last_reduced_cost_ = progress.cost;
  const Cost cost = simulate(original_.graph, plan).cost;
  if (!within(cost) || (best_ && !better(cost, best_cost_))) return false;
  best_ = plan;
  best_cost_ = cost;
  history_.push_back({progress.seconds, progress.work, cost});
  return true;
}

solve::Watcher NetworkReduction::translate(solve::Watcher watcher) {
  return [this, watcher = std::move(watcher)](solve::Progress progress) {
    if (progress.plan != nullptr) take(*progress.plan, progress);
    if (!watcher) return;
    progress.bound.duration = original_bound(progress.bound.duration);
    progress.plan = best_ ? &*best_ : nullptr;
    if (best_) progress.cost = best_cost_;
    watcher(progress);
  };
}

void NetworkReduction::bring_back(Answer& answer) const {
  Outcome& outcome = answer.outcome;
  outcome.bound.duration = original_bound(outcome.bound.duration);
  outcome.model.reset();       // a claim about durations on one lane
  outcome.link_price.reset();  // so is this
  if (outcome.plan) improve(outcome);
  if (!outcome.plan) {
    outcome.found_by.clear();
    if (answer.smallest) outcome.cost = simulate(original_.graph, *answer.smallest).cost;
  }
  settle(outcome);
}

void NetworkReduction::improve(Outcome& outcome) const {
  LimitSettings left = limits_.remaining();
  if (left.seconds) left.seconds = std::max(*left.seconds, kLeastSeconds);
  left.work = kMostMoves;
  Limits limits(left);
  std::vector<Plan> candidates;
  if (best_) candidates.push_back(*best_);
  if (!best_ || outcome.plan->steps != best_->steps) candidates.push_back(*outcome.plan);
  const bool with_given = !original_.graph.has_tensors_on_host();
  if (with_given)
    candidates.push_back(plan_from_sequence(original_.graph, original_.graph.order()));
  outcome.plan = best_;
  outcome.cost = best_cost_;
  outcome.history = history_;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Bytes peak = simulate(original_.graph, candidates[i]).cost.peak;
    if (peak > original_.budget) continue;
    const bool least_memory = original_.objective == Objective::least_memory;
    Plan plan =
        overlapped(original_, candidates[i], least_memory ? peak : original_.budget, limits);
    const Cost cost = simulate(original_.graph, plan).cost;
    if (!within(cost) || (outcome.plan && !better(cost, outcome.cost))) continue;
    if (outcome.history.empty()) outcome.history.emplace_back();
    outcome.history.back().cost = outcome.cost = cost;
    outcome.smallest_peak = std::min(outcome.smallest_peak.value_or(cost.peak), cost.peak);
    outcome.plan = std::move(plan);
    if (with_given && i + 1 == candidates.size()) outcome.found_by = "given";
  }
}

// What is proven of the plan, as Context::finish says it.
void NetworkReduction::settle(Outcome& outcome) const {
  const bool none = outcome.bound.peak > original_.budget ||
                    (original_.time_limit && outcome.bound.duration > *original_.time_limit);
  const bool best = original_.objective == Objective::least_memory
                        ? outcome.cost.peak <= outcome.bound.peak
                        : outcome.cost.duration <= outcome.bound.duration;
  if (outcome.plan)
    outcome.status = best ? Status::optimal : Status::feasible;
  else
    outcome.status = none ? Status::infeasible : Status::unknown;
  if (outcome.status == Status::optimal || outcome.status == Status::infeasible)
    outcome.stopped_by = StopReason::finished;
  else if (outcome.status == Status::unknown && outcome.stopped_by == StopReason::finished)
    outcome.stopped_by = StopReason::gave_up;
}

}  // namespace lowtide::driver
