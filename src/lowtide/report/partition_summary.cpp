#include "lowtide/report/partition_summary.h"

#include <algorithm>

#include "lowtide/graph/equal_blocks.h"

namespace lowtide::report {

namespace {

std::size_t children_of(const Partition& partition, const Block& block,
                        const std::vector<BlockId>& block_of, BlockId id) {
  std::size_t count = block.forward.parts.size();
  for (const BlockPart& part : block.backward.parts) {
    if (part.block.valid()) {
      if (partition.blocks[part.block].forward.empty()) ++count;
      continue;
    }
    const OpId layer = partition.phases.layer[part.op];
    if (!layer.valid() || block_of[layer.index()] != id) ++count;
  }
  return count;
}

}  // namespace

PartitionSummary summarise(const Graph& graph, const Partition& partition) {
  PartitionSummary summary;
  const std::size_t count = partition.blocks.size();
  summary.level.assign(count, 0);
  summary.children.assign(count, 0);
  summary.alike = first_alike(graph, partition);
  std::vector<BlockId> block_of(graph.op_count());
  for (const BlockId id : partition.blocks.ids())
    for (const BlockPart& part : partition.blocks[id].forward.parts)
      if (part.op.valid()) block_of[part.op.index()] = id;
  for (const BlockId id : partition.blocks.ids()) {
    const Block& block = partition.blocks[id];
    const bool is_root = id == Partition::root();
    const std::size_t level = is_root ? 0 : summary.level[block.parent] + 1;
    const std::size_t children = children_of(partition, block, block_of, id);
    const Bytes interface = interface_bytes(graph, block);
    summary.level[id] = level;
    summary.children[id] = children;
    if (summary.levels.size() <= level) summary.levels.resize(level + 1);
    PartitionLevel& row = summary.levels[level];
    ++row.blocks;
    row.ops += block.op_count();
    row.largest = std::max(row.largest, children);
    row.interface = checked_add(row.interface, interface);
    row.saved = checked_add(row.saved, block.saved_bytes);
    summary.interface = checked_add(summary.interface, interface);
    summary.widest = std::max(summary.widest, interface);
    if (summary.alike[id] == id) {
      ++row.unique;
      ++summary.unique;
    }
    if (is_root)
      summary.top = children;
    else
      summary.largest = std::max(summary.largest, children);
  }
  return summary;
}

}  // namespace lowtide::report
