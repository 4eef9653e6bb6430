// What running in place saves along a sequence of computations.
#pragma once

#include "lowtide/graph/graph.h"

namespace lowtide::solve {

// The bytes that the op need not take for its outputs because it writes them over inputs that
// nothing needs afterwards; `ends(TensorId)` tells which of its inputs those are. What
// plan_from_sequence does, as a number.
template <class Ends>
Bytes overwritten_bytes(const Graph& graph, OpId op, Ends ends) {
  Bytes sum;
  TensorId served;
  for (const InPlacePair& pair : graph.overwrites(op)) {
    if (pair.output == served || !ends(pair.input)) continue;
    served = pair.output;
    sum += graph.bytes(pair.output);
  }
  return sum;
}

}  // namespace lowtide::solve
