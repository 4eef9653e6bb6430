#include "lowtide/graph/partition.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lowtide {

BlockId BlockTree::add(BlockId parent, std::string name) {
  parents.push_back(parent);
  if (!name.empty()) names.resize(parents.size() - 1);
  if (!names.empty() || !name.empty()) names.push_back(std::move(name));
  return BlockId(parents.size() - 1);
}

Bytes interface_bytes(const Graph& graph, const Block& block) {
  std::vector<TensorId> all;
  for (const auto* list :
       {&block.forward.takes, &block.forward.gives, &block.backward.takes, &block.backward.gives})
    all.insert(all.end(), list->begin(), list->end());
  std::ranges::sort(all);
  Bytes sum;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i == 0 || all[i] != all[i - 1]) sum += graph.bytes(all[i]);
  return sum;
}

std::string label(const Partition& partition, BlockId id) {
  const std::string& name = partition.blocks[id].name;
  return "block " + std::to_string(id.index()) + (name.empty() ? name : " \"" + name + "\"");
}

}  // namespace lowtide
