// Whether a sequence of computations would do where the order is given.
#pragma once

#include <cstddef>
#include <span>

#include "lowtide/graph/graph.h"

namespace lowtide {

// First computations come in the graph's own order; linear in the sequence.
inline bool follows_order(const Graph& graph, std::span<const OpId> sequence) {
  std::size_t next = 0;
  for (const OpId op : sequence) {
    if (graph.position(op) > next) return false;
    if (graph.position(op) == next) ++next;
  }
  return true;
}

}  // namespace lowtide
