#include "lowtide/driver/split_orders.h"

#include <algorithm>
#include <utility>

#include "lowtide/driver/transform_ideas.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/transforms/if_legal.h"

namespace lowtide::driver {

namespace {

constexpr std::size_t kMost = 24;  // plans
constexpr double kAlike = 0.02;    // relative difference of peaks below which plans count as equal

// A Pareto front of both figures; the largest peaks first.
std::vector<rewrite::Surveyed> frontier(rewrite::Survey survey) {
  std::vector<rewrite::Surveyed> found;
  const auto step = static_cast<std::int64_t>(kAlike * static_cast<double>(survey.peak.count()));
  // The smallest peak comes first.
  for (rewrite::Surveyed& one : survey.found) {
    const auto ops = static_cast<std::int64_t>(one.region.ops.size()) * one.parts;
    if (ops > kMostMadeOps || (!found.empty() && one.time >= found.back().time)) continue;
    if (!found.empty() && (one.peak - found.back().peak).count() < step) found.pop_back();
    found.push_back(std::move(one));
  }
  std::ranges::reverse(found);
  if (found.size() > kMost) found.resize(kMost);
  return found;
}

}  // namespace

Plan own_order_plan(const Applied& applied, const std::optional<Machine>& machine) {
  const Graph& graph = applied.now.graph;
  return on_original(applied.now, applied.transforms,
                     plan_from_events(graph, own_events(graph), machine));
}

std::vector<Plan> split_orders(const Question& question, const std::function<bool()>& stops) {
  std::vector<Plan> plans;
  if (!question.problem.techniques.split) return plans;
  const Device& device = question.prices.device_or_default();
  const CostTable* costs = question.prices.table.get();
  const auto base = apply_cached(question, with_hoist(question));
  for (const rewrite::Surveyed& one :
       frontier(rewrite::survey(base->now.graph, device, costs, stops))) {
    if (stops()) break;
    auto plan = if_legal([&] {
      std::vector<Transform> transforms = base->transforms;
      transforms.emplace_back(rewrite::split_of(base->now, one, device, costs));
      return own_order_plan(*apply_cached(question, transforms), question.problem.machine);
    });
    if (plan) plans.push_back(std::move(*plan));
  }
  return plans;
}

}  // namespace lowtide::driver
