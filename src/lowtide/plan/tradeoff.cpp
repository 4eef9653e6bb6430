#include "lowtide/plan/tradeoff.h"

#include <algorithm>

namespace lowtide {

namespace {

void put_in(TradeoffPoint& point, const Plan& plan, const Cost& cost, std::string_view found_by) {
  Outcome& outcome = point.outcome;
  outcome.status = cost.duration <= outcome.bound.duration ? Status::optimal : Status::feasible;
  outcome.plan = plan;
  outcome.cost = cost;
  outcome.found_by = found_by;
  outcome.note.clear();
}

}  // namespace

bool in_range(const Tradeoff& tradeoff, Bytes budget) {
  return !tradeoff.points.empty() && budget >= tradeoff.points.front().budget &&
         budget <= tradeoff.points.back().budget;
}

std::optional<Bytes> least_without_overhead(const Tradeoff& tradeoff, Ticks base) {
  std::optional<Bytes> least;
  const auto look = [&](const TradeoffPoint& point) {
    if (point.outcome.plan && point.outcome.cost.duration <= base)
      least = std::min(least.value_or(Bytes::max()), point.needs());
  };
  for (const TradeoffPoint& point : tradeoff.points) look(point);
  if (tradeoff.smallest) look(*tradeoff.smallest);
  return least;
}

bool improve(Tradeoff& tradeoff, const Plan& plan, const Cost& cost, std::string_view found_by) {
  bool better = false;
  for (TradeoffPoint& point : tradeoff.points) {
    const Outcome& known = point.outcome;
    if (cost.peak > point.budget || (known.plan && known.cost.duration <= cost.duration)) continue;
    put_in(point, plan, cost, found_by);
    better = true;
  }
  if (tradeoff.smallest && cost.peak < tradeoff.smallest->budget) {
    // What is proven of a budget holds for every smaller one.
    tradeoff.smallest->budget = cost.peak;
    put_in(*tradeoff.smallest, plan, cost, found_by);
    better = true;
  }
  return better;
}

bool improve(Fit& fit, const Plan& plan, const Cost& cost, std::string_view found_by) {
  if (cost.duration > fit.time_limit || !fit.point || cost.peak >= fit.point->budget) return false;
  fit.point->budget = cost.peak;
  put_in(*fit.point, plan, cost, found_by);
  return true;
}

}  // namespace lowtide
