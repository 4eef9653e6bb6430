// A chain: layers of varying width, each with one fused op forward and one backward, which reads
// the layer's input, output and weight. The textbook case of checkpointing.
#include <string>

#include "lowtide/graph/generate/kinds.h"
#include "lowtide/graph/generate/training.h"

namespace lowtide::networks {

Graph generate_chain(std::size_t layers, std::uint64_t seed) {
  Random random(seed);
  const std::int64_t batch = pick(random, {4096, 8192, 16384, 32768});
  const std::int64_t classes = pick(random, {10, 100, 1000});
  Training net("chain of " + std::to_string(layers) + " layers, batch " + std::to_string(batch) +
                   ", seed " + std::to_string(seed),
               kF32, seed);
  Training::Value x = net.data("input", {batch, 1024}, kF32);
  for (std::size_t i = 0; i < layers; ++i)
    x = net.linear_relu("layer" + std::to_string(i), x, 256 * random.between(2, 8));
  return net.finish(net.linear("head", x, classes, false), 1);
}

}  // namespace lowtide::networks
