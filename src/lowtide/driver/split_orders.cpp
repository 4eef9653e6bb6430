#include "lowtide/driver/split_orders.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/driver/transform_ideas.h"
#include "lowtide/plan/events.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/rewrite/survey.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::driver {

namespace {

constexpr std::size_t kMost = 24;  // plans
constexpr double kAlike = 0.02;    // of the peak: not worth a plan of its own

// None beats another in both; the largest peaks first.
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

std::vector<Plan> split_orders(const Question& question, const std::function<bool()>& stops) {
  std::vector<Plan> plans;
  if (!question.problem.techniques.split) return plans;
  const Device& device = question.prices.device_or_default();
  const CostTable* costs = question.prices.table.get();
  const auto base = apply_cached(question, with_hoist(question));
  for (const rewrite::Surveyed& one :
       frontier(rewrite::survey(base->now.graph, device, costs, stops))) {
    if (stops()) break;
    try {
      std::vector<Transform> transforms = base->transforms;
      transforms.emplace_back(rewrite::split_of(base->now, one, device, costs));
      const auto applied = apply_cached(question, transforms);
      const TransformedGraph& made = applied->now;
      plans.push_back(on_original(
          made, transforms,
          plan_from_events(made.graph, own_events(made.graph), question.problem.machine)));
    } catch (const InputError&) {  // refused as a whole
    } catch (const OverflowError&) {
    }
  }
  return plans;
}

}  // namespace lowtide::driver
