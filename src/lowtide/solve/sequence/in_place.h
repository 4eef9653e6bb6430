// The bytes that ops in place save along a sequence of computations.
#pragma once

#include "lowtide/graph/graph.h"

namespace lowtide::solve {

// The bytes of outputs that the op writes over inputs which no later op needs, as
// plan_from_sequence does; `ends(TensorId)`: whether an input is not needed any more.
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
