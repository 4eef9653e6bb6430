// What each transform of a plan does for it, for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/transforms/transform.h"

namespace lowtide::report {

// Of a graph's own order, with the transforms up to this one and without this one; substitutions
// that follow one another are one.
struct TransformEffect {
  std::string text;  // describe()
  Bytes peak_before, peak;
  Ticks added;  // to the time of computing each op once; less than 0 where it saves time
};

// In their order. Throws as apply_transforms does.
std::vector<TransformEffect> effects_of(const Graph& graph, std::span<const Transform> transforms);

// "split of 12 ops into 4 parts: baseline peak 3.2 GiB to 1.1 GiB, time +0.31%"
std::string effect_text(const TransformEffect& effect, Ticks base);

}  // namespace lowtide::report
