// Which ops an eviction may rely on to be recomputed, and until when they may be needed. Private to
// the solver.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::solve::evict {

// For each op: 1 if it may be recomputed at any time after its first computation. Narrower than
// Graph::recomputable: readers of a tensor that some op mutates may not run after that op, nor may
// the producer of a mutated tensor that the graph keeps, so these are 0.
std::vector<std::uint8_t> rerunnable_ops(const Graph& graph, std::span<const OpId> order);

// For each tensor that cannot be restored once it is freed (a releasable input, or an output of an
// op that may not be recomputed): the last position in `order` at which an op, or a recomputation
// that an op may need, may read the tensor. order.size() for a graph output. For all other tensors:
// the position of their last reader in `order`, or of their producer if there is none. Linear in
// the links.
std::vector<std::size_t> last_needs(const Graph& graph, std::span<const OpId> order,
                                    std::span<const std::uint8_t> rerunnable);

}  // namespace lowtide::solve::evict
