// What a plan takes from a device under PyTorch's caching allocator, and which settings would take
// less.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/layout/allocator/replay.h"
#include "lowtide/layout/allocator/settings.h"
#include "lowtide/layout/plan_trace.h"
#include "lowtide/plan/plan.h"

namespace lowtide::layout {

// Reserved bytes grow over the first steps of training and then stay.
inline constexpr int kFootprintSteps = 6;

// Changes of one setting each that can lower what is reserved.
std::vector<AllocatorSettings> settings_to_try(const AllocatorSettings& settings);

struct FootprintTerms {
  AllocatorSettings settings;
  int steps = kFootprintSteps;
  std::optional<Bytes> memory;  // of the device; absent: without a limit
};

struct OtherSettings {
  std::string settings;  // the whole string
  Bytes reserved;        // peak
};

struct DeviceFootprint {
  FootprintTerms terms;
  Bytes live;  // the peak of the plan, as the simulator counts it
  Replay replay;
  std::vector<OtherSettings> better;  // that reserve less, the least first
};

// Throws InputError for a plan that breaks a rule, and as `replay` does.
DeviceFootprint footprint(const Graph& graph, const Plan& plan, const FootprintTerms& terms);

// The same of the unplanned step, in which tensors at home on the host lie on the device, as for
// own_peak.
DeviceFootprint own_footprint(const Graph& graph, const FootprintTerms& terms);

}  // namespace lowtide::layout
