#include "lowtide/rewrite/survey.h"

#include <algorithm>
#include <tuple>

#include "lowtide/base/error.h"
#include "lowtide/plan/transforms/made.h"
#include "lowtide/rewrite/priced_region.h"

namespace lowtide::rewrite {

Survey survey(const Graph& graph, const Device& device) {
  Survey made{.peak = profile_of(graph).peak(), .found = {}};
  const PartPricer pricer(graph, device, nullptr);
  for (const Candidate& candidate : propose(graph)) {
    for (const std::int64_t parts : parts_for(candidate.slices)) {
      try {
        const Profile profile = PricedRegion(graph, candidate, parts, pricer).profile();
        if (profile.peak() < made.peak)
          made.found.push_back({candidate, parts, profile.peak(), profile.time});
      } catch (const InputError&) {  // not into so many, or a copy would be needed
      } catch (const OverflowError&) {
      }
    }
  }
  std::ranges::stable_sort(made.found, {},
                           [](const Surveyed& one) { return std::tuple(one.peak, one.time); });
  return made;
}

}  // namespace lowtide::rewrite
