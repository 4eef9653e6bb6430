// The price of a graph's ops on a device, from what the graph says of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lowtide/device/cost_table.h"
#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// How many operations an op does, if whoever made the graph has written it down.
using StatedOperations = std::function<std::optional<std::int64_t>(const Op&)>;

// The same graph with every op's time from the roofline (kernel_ns of roofline.h); an op that the
// table knows, if there is one, has time and workspace from there. Ticks of ns, us and ms stay,
// rounded up; a graph in flop or none gets ns.
//
// Operations are those stated, else the op's time where the graph's tick is flop, else those
// counted from kind and shapes (operations.h). Bytes moved are those of all inputs and outputs,
// each storage once. The number type is that of the first floating-point tensor, inputs before
// outputs; f32 if there is none; convolutions of f32 run in tf32.
//
// Collectives (kind "_c10d_functional...") take the peer link: an all-reduce sends its bytes twice,
// a wait takes no time. Barriers, random states and what neither makes nor changes a tensor take
// none either. Dropout's mask takes the whole kernel's time less that of applying it.
//
// Throws InputError (place: the op) for one that has no price, saying what is missing.
Graph priced_on(Graph graph, const Device& device, const StatedOperations& stated,
                const CostTable* table = nullptr);

}  // namespace lowtide
