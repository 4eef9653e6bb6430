// Which blocks of a graph repeat: its layers, found without being told where they are.
#pragma once

#include <cstddef>
#include <vector>

#include "lowtide/graph/blocks.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// Blocks that are equal to one another (blocks.h).
struct RepeatedBlock {
  BlockHash hash;
  // One list for each block, by the position of its first op in the given order; the ops of each
  // correspond place by place to those of the others wherever the form is exact.
  std::vector<std::vector<OpId>> places;
  Ticks time;  // of all of them

  std::size_t ops() const { return places.front().size(); }
  std::size_t covered() const { return ops() * places.size(); }
};

struct RepeatSettings {
  std::size_t most = 16;       // kinds of blocks
  double least_share = 0.005;  // of all ops, that the blocks of one kind must cover
};

// Disjoint blocks, each either a run of the given order or all ops of one origin and phase; where
// both cover as much, the origin says better where a layer begins. The kind that covers the most
// ops comes first, and is taken first; of kinds that cover as many, the one with smaller blocks:
// twelve layers, not six pairs of them. A single op is a block only where it repeats on end.
//
// What is found are the largest repeats that a search in n log n steps meets, not provably the
// largest that there are.
std::vector<RepeatedBlock> repeated_blocks(const Graph& graph, const RepeatSettings& settings = {});

}  // namespace lowtide
