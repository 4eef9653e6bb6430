#include "lowtide/rewrite/survey.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/rewrite/priced_region.h"

namespace lowtide::rewrite {

Survey survey(const Graph& graph, const Device& device, const CostTable* costs,
              const std::function<bool()>& stops) {
  Survey made{.peak = profile_of(graph).peak(), .found = {}};
  const PartPricer pricer(graph, device, costs);
  for (const Candidate& candidate : propose(graph, stops)) {
    if (stops && stops()) break;
    for (const std::int64_t parts : parts_for(candidate.slices)) {
      const auto priced = PricedRegion::make(graph, candidate, parts, pricer);
      if (!priced) continue;
      const Profile profile = priced->profile();
      if (profile.peak() < made.peak)
        made.found.push_back({candidate, parts, profile.peak(), profile.time});
    }
  }
  std::ranges::stable_sort(made.found, {},
                           [](const Surveyed& one) { return std::tuple(one.peak, one.time); });
  return made;
}

Split split_of(const TransformedGraph& now, const Surveyed& one, const Device& device,
               const CostTable* costs) {
  const PartPricer pricer(now.graph, device, costs);
  const auto priced = PricedRegion::make(now.graph, one.region, one.parts, pricer);
  check(priced.has_value(), "what a survey has found can be done");
  return priced->split(now);
}

Applied hoisted(const Graph& graph, const Device& device, const CostTable* costs, bool allowed) {
  Applied found{{}, apply_transforms(graph, {})};
  if (!allowed) return found;
  const PartPricer pricer(found.now.graph, device, costs);
  try {
    if (const auto hoist = priced_hoist(found.now, pricer)) {
      std::vector<Transform> transforms = {*hoist};
      found.now = apply_further(graph, found, transforms);
      found.transforms = std::move(transforms);
    }
  } catch (const TransformRefused&) {  // the graph stays unchanged
  } catch (const OverflowError&) {
  }
  return found;
}

}  // namespace lowtide::rewrite
