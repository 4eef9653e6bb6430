// Blocks that are ranges of the layers in the given order: convex, whatever they are.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/graph/partition.h"
#include "lowtide/graph/phases.h"
#include "lowtide/solve/hierarchy/partition/layer_dag.h"

namespace lowtide::solve::partition {

// Layers from `first` to before `last`.
struct Range {
  std::size_t first = 0, last = 0;
  std::size_t size() const { return last - first; }
  bool operator==(const Range&) const = default;
};

// A block of each range of two layers or more. `ranges` ascend, do not overlap, and cover whatever
// is to be in a block; layers between them count as ranges of one. Where the root then has more
// than `most` children, they go into blocks of `run` neighbours each, as equal in number as they
// can be, and these into others, until it has not. run > 1.
Partition partition_of(const Graph& graph, Phases phases, const Layers& layers,
                       std::span<const Range> ranges, std::size_t most, std::size_t run);

}  // namespace lowtide::solve::partition
