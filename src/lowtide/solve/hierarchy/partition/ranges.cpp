#include "lowtide/solve/hierarchy/partition/ranges.h"

#include <algorithm>
#include <utility>

namespace lowtide::solve::partition {

Partition partition_of(const Graph& graph, Phases phases, const Layers& layers,
                       std::span<const Range> ranges, std::size_t most, std::size_t run) {
  std::vector<Range> leaves;
  std::size_t next = 0;
  const auto up_to = [&](std::size_t first) {
    for (; next < first; ++next) leaves.push_back({next, next + 1});
  };
  for (const Range& range : ranges) {
    up_to(range.first);
    leaves.push_back(range);
    next = range.last;
  }
  up_to(layers.ops.rows());

  // Levels from the inside out; each has the positions at which its blocks begin among those of the
  // level before.
  std::vector<std::vector<Range>> levels;
  for (std::size_t count = leaves.size(); count > most;) {
    const std::size_t blocks = (count + run - 1) / run;
    if (blocks == count) break;
    std::vector<Range> level;
    for (std::size_t i = 0; i < blocks; ++i)
      level.push_back({count * i / blocks, count * (i + 1) / blocks});
    levels.push_back(std::move(level));
    count = blocks;
  }
  BlockTree tree(0);
  std::vector<BlockId> outer(levels.empty() ? leaves.size() : levels.back().size(),
                             Partition::root());
  for (std::size_t k = levels.size(); k-- > 0;) {
    std::vector<BlockId> inner(k > 0 ? levels[k - 1].size() : leaves.size());
    for (std::size_t i = 0; i < levels[k].size(); ++i) {
      const Range& range = levels[k][i];
      const BlockId id = range.size() > 1 ? tree.add(outer[i]) : outer[i];
      std::fill(inner.begin() + static_cast<std::ptrdiff_t>(range.first),
                inner.begin() + static_cast<std::ptrdiff_t>(range.last), id);
    }
    outer = std::move(inner);
  }
  std::vector<BlockId> block_of(layers.ops.rows());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const BlockId id = leaves[i].size() > 1 && leaves.size() > 1 ? tree.add(outer[i]) : outer[i];
    std::fill(block_of.begin() + static_cast<std::ptrdiff_t>(leaves[i].first),
              block_of.begin() + static_cast<std::ptrdiff_t>(leaves[i].last), id);
  }
  return spread(graph, std::move(phases), layers, block_of, std::move(tree), run);
}

}  // namespace lowtide::solve::partition
