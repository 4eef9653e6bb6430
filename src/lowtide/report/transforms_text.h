// The effect of each transform of a plan, as text for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/transforms/transform.h"

namespace lowtide::report {

// The effect on the given order: with the transforms up to this one, against those before it.
// Consecutive substitutions count as one transform.
struct TransformEffect {
  std::string text;  // describe()
  Bytes peak_before, peak;
  Ticks added;  // to the time of computing each op once; negative if it saves time
};

// In the order of the transforms. Throws as apply_transforms does.
std::vector<TransformEffect> effects_of(const Graph& graph, std::span<const Transform> transforms);

// "split of 12 ops into 4 parts: baseline peak 3.2 GiB to 1.1 GiB, time +0.31%"
std::string effect_text(const TransformEffect& effect, Ticks base);

}  // namespace lowtide::report
