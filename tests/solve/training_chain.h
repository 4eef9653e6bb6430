// The graph that papers on recomputation begin with.
#pragma once

#include <cstddef>

#include "lowtide/graph/graph.h"

namespace lowtide {

struct ChainSettings {
  std::size_t layers = 10;
  bool barrier = true;    // between forward and backward
  bool beside = false;    // a tensor made first is read by every layer
  bool mirrored = false;  // the second half of the forward also reads the first, last first
};

// Layer i reads what layer i - 1 made; its backward, in reverse, reads that too and the gradient
// that comes to it. All tensors have one byte, all ops take one tick. Only the last gradient is
// kept.
Graph training_chain(const ChainSettings& settings);

}  // namespace lowtide
