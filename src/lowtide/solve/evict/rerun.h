// Which ops an eviction may count on running again, and until when it may want to. Private to the
// solver.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide::solve::evict {

// For each op: 1 if it may be computed again at any time after its first. Narrower than
// Graph::recomputable: a reader of a tensor that some op mutates may not run after that op, nor the
// producer of a mutated tensor that the graph keeps, so neither counts here.
std::vector<std::uint8_t> rerunnable_ops(const Graph& graph, std::span<const OpId> order);

// For each tensor that, once gone, cannot be made again (a releasable input, or an output of an op
// that may not run again): the last position in `order` at which computing that op, or making again
// any of the tensors that it needs, may read it. order.size() for a graph output. For all other
// tensors, the position of their last reader in `order`; their producer's if there is none.
// Linear in the links.
std::vector<std::size_t> last_needs(const Graph& graph, std::span<const OpId> order,
                                    std::span<const std::uint8_t> rerunnable);

}  // namespace lowtide::solve::evict
