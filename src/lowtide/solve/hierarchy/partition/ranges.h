// Blocks that are ranges of the layers in the given order, and so convex.
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

// Layers from `first` up to, but not including, `last`.
struct Range {
  std::size_t first = 0, last = 0;
  std::size_t size() const { return last - first; }
  bool operator==(const Range&) const = default;
};

// A block for each range of two or more layers. `ranges` ascend, do not overlap, and cover all
// layers that belong in a block; layers between them count as ranges of one. While the root has
// more than `most` children, they are grouped into blocks of about `run` neighbours each. run > 1.
Partition partition_of(const Graph& graph, Phases phases, const Layers& layers,
                       std::span<const Range> ranges, std::size_t most, std::size_t run);

}  // namespace lowtide::solve::partition
