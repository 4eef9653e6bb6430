// Prices the ops of a graph on a device, by the operands and arguments in the graph.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lowtide/device/cost_table.h"
#include "lowtide/device/device.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// The number of operations of an op, if the graph states it.
using StatedOperations = std::function<std::optional<std::int64_t>(const Op&)>;

// The same graph with the time of every op from the roofline (kernel_ns of roofline.h); ops in the
// table, if there is one, have their time and workspace from it. Ticks of ns, us and ms stay,
// rounded up; a graph in flop or none gets ns.
//
// The number of operations is the stated one; else the op's time if the graph's tick is flop; else
// it is counted from kind and shapes (operations.h). Bytes moved are those of all inputs and
// outputs, each storage once. The number type is that of the first floating-point tensor, inputs
// before outputs; f32 if there is none; convolutions of f32 run in tf32.
//
// Collectives (kind "_c10d_functional...") use the peer link: an all-reduce sends its bytes twice,
// a wait takes no time. Barriers, random states, and ops that neither make nor change a tensor take
// no time either. A dropout mask takes the time of the whole kernel, less that of its application.
//
// Throws InputError (place: the op) for an op without a price, and says what is missing.
Graph priced_on(Graph graph, const Device& device, const StatedOperations& stated,
                const CostTable* table = nullptr);

}  // namespace lowtide
