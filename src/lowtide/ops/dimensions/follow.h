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
// component of the seeds in the D-Graph. Only ops of `region` may carry (all ops, if it is empty);
// the others are outside, where every tensor is whole: they stop nothing and read what was put
// together again.
//
// What holds of the answer: if every op that carries is run once for each part, on its views, and
// what others read of a split or partial tensor is put together from the parts, then every tensor
// has its value. What an op that carries takes whole is made by no op that carries (but one that
// makes it before the parts, or the same in each). A split tensor that no op that carries makes is
// read in slices of its storage. The ops that carry need not be convex.
//
// Tensors of a component differ in slices where one is a crop of another, as logits without those
// of the last token. All are cut at the same places: a part is a range of slices of the longest,
// and of the others it has those that there are (axis.h, clipped).
//
// One thing is not asked here: whether the parts make what a result that is made before them is
// decided by (decides_before).
//
// Linear in the size of the graph; the same answer every time. InputError (place: the tensor) for a
// seed whose dimension does not exist, has one slice only, or is no axis of its storage, and for
// two seeds that put different axes on a tensor.
Reach follow(const Graph& graph, std::span<const Seed> seeds, std::span<const OpId> region = {});

// Whether a result that the op makes before the parts is decided by that operand: by what is not
// cut, and by integers that are (the targets of a loss, not its scores).
bool decides_before(const Op& op, const Carry& carry, std::size_t operand);

// The arguments of a part with these slices of the longest tensor of the op's component: sizes
// follow, and by how much it crops or pads; all else stays.
std::vector<Argument> part_arguments(const Op& op, const Carry& carry, const Slices& part);

}  // namespace lowtide::dimensions
