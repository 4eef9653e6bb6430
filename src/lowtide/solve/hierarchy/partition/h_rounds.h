// Algorithm 2 of HiRemate's appendix A: rounds of choosing groups, each of which becomes a block.
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

// Blocks from the inside out, each after those in it. Numbers below that of the layers' nodes are
// nodes, those from there on blocks. Children are in an order of their first nodes.
struct Grown {
  std::vector<std::vector<Node>> blocks;
  std::vector<Node> top;  // what is in no block
};

// Nothing if `stop` said yes.
std::optional<Grown> grow_blocks(const Layers& layers, const HSettings& settings,
                                 const std::function<bool()>& stop);

}  // namespace lowtide::solve::partition
