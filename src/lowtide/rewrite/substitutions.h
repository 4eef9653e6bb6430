// The substitutions that the rules allow on a graph, with savings and costs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lowtide/device/part_price.h"
#include "lowtide/transforms/apply.h"

namespace lowtide::rewrite {

struct Proposed {
  Substitute substitute;  // with all prices; legal on `now`, in file indices
  Ticks saved;            // of computing each op once; negative if it costs time
};

// All substitutions of all rules, in the given order of their anchors. The pricer is that of
// `now.graph`. Ends early, with its results so far, if `stops` returns true.
std::vector<Proposed> substitutions(const TransformedGraph& now, const PartPricer& pricer,
                                    const std::function<bool()>& stops = {});

// The sets of substitutions: all that save time; or, of these, those that do not increase the live
// bytes, averaged over the given order.
enum class Taken : std::uint8_t { faster, faster_and_lighter };

// The given substitutions, and after them, in rounds, those that are possible on the graph that the
// ones before make; of two that conflict, the one that saves more. Then those that cost no time and
// reduce the live bytes.
Applied substituted(const Graph& graph, Applied given, const Device& device, const CostTable* costs,
                    Taken taken, const std::function<bool()>& stops = {});

}  // namespace lowtide::rewrite
