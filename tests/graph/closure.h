// Reachability the slow way, as a reference: closure[a][b] says whether a reaches b, itself
// included.
#pragma once

#include <vector>

#include "lowtide/graph/graph.h"

namespace lowtide {

using Closure = std::vector<std::vector<bool>>;

inline Closure make_closure(const Graph& graph) {
  const std::size_t n = graph.op_count();
  Closure closure(n, std::vector<bool>(n, false));
  for (std::size_t k = n; k-- > 0;) {
    const OpId op = graph.order()[k];
    closure[op.index()][op.index()] = true;
    for (OpId next : graph.successors(op))
      for (std::size_t i = 0; i < n; ++i)
        if (closure[next.index()][i]) closure[op.index()][i] = true;
  }
  return closure;
}

}  // namespace lowtide
