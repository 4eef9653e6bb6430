// Tracks incumbents and claims, in the same way for every solver.
#include "lowtide/solve/interface/context.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/peak_floor.h"

namespace lowtide::solve {

Context::Context(const Problem& problem, std::string_view solver, ContextSettings settings)
    : problem_(problem),
      solver_(solver),
      settings_(std::move(settings)),
      limits_(settings_.limits),
      random_(settings_.seed) {
  check(!problem.graph.has_network_ops(), "the driver has put all ops on the compute lane");
  if (may_transform())
    outcome_.bound = {settings_.known.duration,
                      std::max(always_live(problem), settings_.known.peak)};
  else
    outcome_.bound = {std::max(problem.graph.total_time(), settings_.known.duration),
                      std::max(peak_floor(problem), settings_.known.peak)};
  own_duration_ = outcome_.bound.duration;
}

bool Context::better(const Cost& a, const Cost& b) const {
  if (problem_.objective == Objective::least_memory)
    return std::tie(a.peak, a.duration) < std::tie(b.peak, b.duration);
  return std::tie(a.duration, a.peak) < std::tie(b.duration, b.peak);
}

bool Context::offer(Plan plan, std::string_view found_by) {
  const Timeline timeline = simulate(problem_.graph, plan);
  if (timeline.violation)
    throw InternalError("solver " + solver_ + " proposed a plan that breaks a rule at step " +
                        std::to_string(timeline.violation->step) + ": " +
                        timeline.violation->reason);
  const Cost cost = timeline.cost;
  // No start plan either: repairs lower the device's peak only.
  if (problem_.host_budget && cost.host_peak > *problem_.host_budget) return false;
  const bool smaller = !outcome_.smallest_peak || cost.peak < *outcome_.smallest_peak;
  if (smaller) outcome_.smallest_peak = cost.peak;
  const bool within = cost.peak <= problem_.budget &&
                      (!problem_.time_limit || cost.duration <= *problem_.time_limit);
  if (!within) {
    if ((!repair_start_ || cost.peak < repair_cost_.peak) &&
        (!has_plan() || cost.duration < outcome_.cost.duration)) {
      repair_start_ = plan;
      repair_cost_ = cost;
    }
    if (smaller) {
      if (!has_plan()) outcome_.cost = cost;
      smallest_ = std::move(plan);
      notify();
    }
    return false;
  }
  if (has_plan() && !better(cost, outcome_.cost)) {
    if (smaller) smallest_ = std::move(plan);
    return false;
  }
  if (smaller) smallest_ = plan;
  if (PortfolioPart* part = find_part(found_by)) {
    ++part->plans;
    if (has_plan()) part->won += outcome_.cost.duration - cost.duration;
  }
  if (repair_start_ && repair_cost_.duration >= cost.duration) repair_start_.reset();
  outcome_.plan = std::move(plan);
  outcome_.cost = cost;
  if (cost.duration < outcome_.bound.duration) {
    outcome_.bound.duration = own_duration_;
    engine_believed_ = false;
  }
  outcome_.found_by = found_by.empty() ? solver_ : std::string(found_by);
  outcome_.history.push_back({limits_.seconds(), limits_.work(), cost});
  notify();
  return true;
}

bool Context::offer_sequence(std::span<const OpId> sequence) {
  return offer_events(events_from(sequence));
}

bool Context::offer_events(std::span<const Event> events) {
  Ticks duration;
  for (const Event& event : events) {
    if (!event.is_compute()) continue;
    if (problem_.graph.time(event.op()) > Ticks::max() - duration) return false;
    duration += problem_.graph.time(event.op());
  }
  return offer(plan_from_events(problem_.graph, events, problem_.machine));
}

PortfolioPart* Context::find_part(std::string_view name) {
  for (PortfolioPart& part : outcome_.parts)
    if (part.name == name) return &part;
  return nullptr;
}

PortfolioPart& Context::part(std::string_view name) {
  if (PortfolioPart* known = find_part(name)) return *known;
  return outcome_.parts.emplace_back(PortfolioPart{.name = std::string(name)});
}

void Context::raise_bound(Ticks duration) {
  own_duration_ = std::max(own_duration_, duration);
  if (duration <= outcome_.bound.duration) return;
  outcome_.bound.duration = duration;
  notify();
}

void Context::raise_engine_bound(Ticks duration) {
  if (has_plan() && duration > outcome_.cost.duration) engine_believed_ = false;
  if (!engine_believed_) {
    outcome_.bound.duration = own_duration_;
  } else if (duration > outcome_.bound.duration) {
    outcome_.bound.duration = duration;
    notify();
  }
}

void Context::raise_floor(Bytes peak) {
  if (peak <= outcome_.bound.peak) return;
  outcome_.bound.peak = peak;
  notify();
}

bool Context::proven_optimal() const {
  if (!has_plan()) return false;
  return problem_.objective == Objective::least_memory
             ? outcome_.cost.peak <= outcome_.bound.peak
             : outcome_.cost.duration <= outcome_.bound.duration;
}

void Context::notify() {
  if (!settings_.watcher) return;
  Progress progress{limits_.seconds(), limits_.work(),         solver_,       nullptr,
                    outcome_.cost,     outcome_.smallest_peak, outcome_.bound};
  if (has_plan()) progress.plan = &*outcome_.plan;
  settings_.watcher(progress);
}

Outcome Context::finish() {
  outcome_.stopped_by = limits_.reason();
  // A plan as short as the sum of its ops is not limited by the link.
  if (problem_.machine && has_plan() && outcome_.cost.duration <= problem_.graph.total_time())
    outcome_.link_price = 0;
  if (proven_optimal())
    outcome_.status = Status::optimal;
  else if (has_plan())
    outcome_.status = Status::feasible;
  else
    outcome_.status = proven_infeasible() ? Status::infeasible : Status::unknown;
  if (proven_optimal() || proven_infeasible()) outcome_.stopped_by = StopReason::finished;
  // Giving up is no proof of infeasibility.
  if (outcome_.status == Status::unknown && outcome_.stopped_by == StopReason::finished)
    outcome_.stopped_by = StopReason::gave_up;
  return std::move(outcome_);
}

}  // namespace lowtide::solve
