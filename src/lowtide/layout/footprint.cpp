#include "lowtide/layout/footprint.h"

#include <algorithm>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::layout {

std::vector<AllocatorSettings> settings_to_try(const AllocatorSettings& settings) {
  const AllocatorSettings defaults;
  std::vector<AllocatorSettings> others;
  const auto add = [&](const auto& change) {
    AllocatorSettings other = settings;
    change(other);
    if (other != settings) others.push_back(other);
  };
  add([](AllocatorSettings& other) { other.expandable_segments = !other.expandable_segments; });
  add([&](AllocatorSettings& other) { other.roundup_divisions = defaults.roundup_divisions; });
  add([&](AllocatorSettings& other) { other.large_segment = defaults.large_segment; });
  add([](AllocatorSettings& other) {
    other.max_split_size.reset();
    other.max_non_split_rounding = AllocatorSettings().max_non_split_rounding;
  });
  for (const std::int64_t mebibytes : {64, 256, 1024})
    add([&](AllocatorSettings& other) {
      other.max_split_size = std::max(Bytes(mebibytes * kMiB.count()), other.large_segment);
    });
  return others;
}

DeviceFootprint footprint(const Graph& graph, const Plan& plan, const FootprintTerms& terms) {
  if (terms.steps < 1) throw InputError("steps", "must be at least 1");
  const Timeline timeline = simulate(graph, plan);
  if (timeline.violation) throw InputError("the plan", timeline.violation->reason);
  const Trace trace = plan_trace(graph, plan, terms.steps);
  DeviceFootprint found{terms, timeline.cost.peak, replay(trace, terms.settings, terms.memory), {}};
  for (const AllocatorSettings& other : settings_to_try(terms.settings)) {
    const Replay tried = replay(trace, other, terms.memory);
    const bool better =
        found.replay.out_of_memory || tried.peaks.reserved < found.replay.peaks.reserved;
    if (better && !tried.out_of_memory)
      found.better.push_back({to_string(other), tried.peaks.reserved});
  }
  std::ranges::stable_sort(found.better, {}, &OtherSettings::reserved);
  return found;
}

DeviceFootprint own_footprint(const Graph& graph, const FootprintTerms& terms) {
  if (!graph.has_tensors_on_host()) return footprint(graph, own_plan(graph), terms);
  return own_footprint(Graph(graph).with_homes_on_device(), terms);
}

}  // namespace lowtide::layout
