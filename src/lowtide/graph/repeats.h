// Finds the blocks that repeat in a graph, such as its layers, without any hint.
#pragma once

#include <cstddef>
#include <vector>

#include "lowtide/graph/blocks.h"
#include "lowtide/graph/graph.h"

namespace lowtide {

// Blocks that are equal to one another (blocks.h).
struct RepeatedBlock {
  BlockHash hash;
  // One list of ops for each block, sorted by the first op in the given order. If the form is
  // exact, the ops of all lists correspond one by one.
  std::vector<std::vector<OpId>> places;
  Ticks time;  // of all blocks together

  std::size_t ops() const { return places.front().size(); }
  std::size_t covered() const { return ops() * places.size(); }
};

struct RepeatSettings {
  std::size_t most = 16;       // number of kinds of blocks
  double least_share = 0.005;  // of all ops, which the blocks of one kind must cover
};

// Disjoint blocks. Each is a contiguous range of the given order, or all ops of one origin and
// phase; of two such candidates that cover as much the origin is preferred, since its blocks begin
// where layers begin. Kinds are chosen greedily: the kind that covers most ops comes first; of
// kinds that cover as many, the one with smaller blocks (twelve layers rather than six pairs). A
// single op is a block only if it repeats consecutively.
//
// The result has the largest repeats that a search in n log n steps finds; larger ones may exist.
std::vector<RepeatedBlock> repeated_blocks(const Graph& graph, const RepeatSettings& settings = {});

}  // namespace lowtide
