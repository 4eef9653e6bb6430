// The substitutions that the rules allow on a graph, with savings and costs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lowtide/device/part_price.h"
#include "lowtide/transforms/apply.h"

namespace lowtide::rewrite {

struct Proposed {
  Substitute substitute;  // with all prices; legal on `now`, by the file's indices
  Ticks saved;            // of computing each op once; negative where it costs time
};

// Of every rule, at every op of one of its kinds: in the graph's order of ops. The pricer is that
// of `now.graph`. Ends early, with what it has, as soon as `stops` says so.
std::vector<Proposed> substitutions(const TransformedGraph& now, const PartPricer& pricer,
                                    const std::function<bool()>& stops = {});

// Which substitutions are put together: all that save time; or, of these, those after which no more
// is live, on average over the own order.
enum class Taken : std::uint8_t { faster, faster_and_lighter };

// The given ones, and behind them, in rounds, the substitutions that are there on the graph that
// the ones before have made; of two that are in each other's way, the one that saves more. Then
// those that cost no time and leave less live.
Applied substituted(const Graph& graph, Applied given, const Device& device, const CostTable* costs,
                    Taken taken, const std::function<bool()>& stops = {});

}  // namespace lowtide::rewrite
