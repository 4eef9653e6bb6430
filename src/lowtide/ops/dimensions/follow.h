// Follows axes through a graph.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/reach.h"
#include "lowtide/ops/dimensions/seed.h"

namespace lowtide::dimensions {

// Follows the axes from the seeds to producers and consumers as far as the table allows: the
// component of the seeds in the D-Graph. Only ops of `region` may carry an axis (all ops, if it is
// empty). For ops outside the region every tensor is whole: they stop no axis, and read tensors
// joined from the parts.
//
// What the answer guarantees: run every op that carries an axis once for each part, on its views,
// and join the parts of each split or partial tensor for its other readers. Then every tensor has
// its value. If an op that carries an axis reads a tensor whole, no such op makes the tensor,
// except an op that makes it before the parts, or equal in each part. A split tensor that no such
// op makes is read in slices of its storage. The ops that carry an axis need not be convex.
//
// Tensors of a component have different numbers of slices if one is a crop of another, as logits
// without those of the last token. All are divided at the same places: a part is a range of slices
// of the longest tensor, and of the others the slices in that range (axis.h, clipped).
//
// One condition is not checked here: a result that is made before the parts may depend on an
// operand that the parts make (decides_before).
//
// Linear in the size of the graph, and deterministic. InputError (place: the tensor) for a seed
// whose dimension does not exist, has only one slice, or is not an axis of its storage, and for two
// seeds that put different axes on a tensor.
Reach follow(const Graph& graph, std::span<const Seed> seeds, std::span<const OpId> region = {});

// Whether a result that the op makes before the parts depends on that operand: it depends on
// operands that are not divided, and on divided integers (the targets of a loss, not its scores).
bool decides_before(const Op& op, const Carry& carry, std::size_t operand);

// The arguments of a part with these slices of the longest tensor in the op's component. Sizes,
// crops and padding are adapted; all other arguments stay.
std::vector<Argument> part_arguments(const Op& op, const Carry& carry, const Slices& part);

}  // namespace lowtide::dimensions
