// The training networks, sized in blocks. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "lowtide/base/random.h"
#include "lowtide/graph/graph.h"

namespace lowtide::networks {

Graph generate_chain(std::size_t layers, std::uint64_t seed);
Graph generate_resnet(std::size_t blocks, std::uint64_t seed);
// `blocks` on the way down, and as many on the way up.
Graph generate_unet(std::size_t blocks, std::uint64_t seed);
Graph generate_transformer(std::size_t blocks, std::uint64_t seed);

// A random choice, each with the same probability.
inline std::int64_t pick(Random& random, std::initializer_list<std::int64_t> choices) {
  return choices.begin()[random.below(choices.size())];
}

}  // namespace lowtide::networks
