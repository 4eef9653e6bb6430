// A block is hashed only if another block has as many ops, as many bytes at its border and as many
// saved bytes. So deep nests, in which each block is larger than its inner block, cost little.
#include "lowtide/graph/equal_blocks.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "lowtide/graph/blocks.h"

namespace lowtide {

IdVector<BlockId, BlockId> first_alike(const Graph& graph, const Partition& partition) {
  using Glance = std::tuple<std::size_t, std::size_t, Bytes, Bytes>;
  std::map<Glance, std::vector<BlockId>> alike_at_a_glance;
  for (const BlockId id : partition.blocks.ids()) {
    const Block& block = partition.blocks[id];
    const Glance glance(block.forward.op_count(), block.backward.op_count(), block.saved_bytes,
                        interface_bytes(graph, block));
    alike_at_a_glance[glance].push_back(id);
  }
  IdVector<BlockId, BlockId> first(partition.blocks.size());
  std::vector<OpId> ops;
  for (const auto& [glance, blocks] : alike_at_a_glance) {
    if (blocks.size() == 1) {
      first[blocks.front()] = blocks.front();
      continue;
    }
    std::map<BlockHash, BlockId> of_hash;
    for (const BlockId id : blocks) {
      const Block& block = partition.blocks[id];
      ops.clear();
      for (const Half* half : {&block.forward, &block.backward})
        ops.insert(ops.end(), partition.ops(*half).begin(), partition.ops(*half).end());
      first[id] = of_hash.try_emplace(block_hash(graph, ops, Alike::plan), id).first->second;
    }
  }
  return first;
}

}  // namespace lowtide
