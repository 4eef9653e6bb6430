#include "lowtide/report/transforms_text.h"

#include <fmt/format.h>

#include "lowtide/plan/outcome.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/transforms/apply.h"
#include "lowtide/transforms/together.h"

namespace lowtide::report {

std::vector<TransformEffect> effects_of(const Graph& graph, std::span<const Transform> transforms) {
  std::vector<TransformEffect> effects;
  Bytes peak = own_peak(graph);
  Ticks time = own_duration(graph);
  std::size_t done = 0;
  for (const std::span<const Transform> some : together(transforms)) {
    done += some.size();
    const Graph made = apply_transforms(graph, transforms.first(done)).graph;
    effects.push_back({.text = describe(some),
                       .peak_before = peak,
                       .peak = own_peak(made),
                       .added = own_duration(made) - time});
    peak = effects.back().peak;
    time = own_duration(made);
  }
  return effects;
}

std::string effect_text(const TransformEffect& effect, Ticks base) {
  return fmt::format("{}: baseline peak {} to {}, time {}{}", effect.text,
                     bytes_text(effect.peak_before), bytes_text(effect.peak),
                     effect.added < Ticks(0) ? "" : "+",
                     percent_text(overhead_percent(base + effect.added, base)));
}

}  // namespace lowtide::report
