// Generators of graphs of any size, for tests and benchmarks of planners:
//
// - layered: random layers, as in the literature on rematerialization. Inference, no unit of time.
// - chain: a feed-forward network, one op for each layer and direction.
// - resnet: residual blocks of convolutions and batch norms in four stages.
// - unet: down and up again through five resolutions, with a skip connection from every block to
//   its mirror.
// - transformer: attention and feed-forward blocks with dropout.
//
// All but the first are training steps: forward, loss, a barrier, backward. Parameters are inputs;
// their gradients and the loss are outputs. Times are ns on a large GPU; workspaces are estimated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "lowtide/graph/graph.h"

namespace lowtide {

std::span<const std::string_view> generator_kinds();

// A network of this kind with about `ops` ops (layered: exactly; others: as near as a whole number
// of blocks allows). Width, batch and so on follow from the seed: the same seed gives the same
// graph. Throws InputError for an unknown kind or for no ops.
Graph generate(std::string_view kind, std::size_t ops, std::uint64_t seed);

struct LayeredSettings {
  double width = 0.31;   // w: a layer has about w / (1 - w) times as many ops as there are layers
  double spread = 0.75;  // relative spread of the layers' widths
  double density = 0.2;  // of edges between neighbouring layers, from just connected (0) to all (1)
  double skips = 0.14;   // share of edges that skip layers
};
// Exactly `ops` ops. The number of links grows as ops^1.5, since neighbouring layers join a fixed
// share of their pairs: 5 million at 100,000 ops. Throws InputError for no ops, or a setting
// outside of [0, 1].
Graph generate_layered(std::size_t ops, std::uint64_t seed, const LayeredSettings& settings = {});

}  // namespace lowtide
