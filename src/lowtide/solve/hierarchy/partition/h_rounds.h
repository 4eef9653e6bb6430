// Algorithm 2 of HiRemate's appendix A: rounds that choose groups, each of which becomes a block.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "lowtide/solve/hierarchy/partition/layer_dag.h"

namespace lowtide::solve::partition {

struct HSettings {
  std::size_t top_size = 30;    // M^t
  std::size_t block_size = 20;  // M^l
  double alpha = 0.5;
};

// Blocks from the inside out, each after its inner blocks. Numbers below the number of layers'
// nodes are nodes; numbers from there on are blocks. Children are sorted by their first nodes.
struct Grown {
  std::vector<std::vector<Node>> blocks;
  std::vector<Node> top;  // nodes and blocks that are in no block
};

// nullopt if `stop` returned true.
std::optional<Grown> grow_blocks(const Layers& layers, const HSettings& settings,
                                 const std::function<bool()>& stop);

}  // namespace lowtide::solve::partition
