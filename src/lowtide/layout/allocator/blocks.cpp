#include "lowtide/layout/allocator/blocks.h"

#include <algorithm>

namespace lowtide::layout {

Block* Blocks::make(Pool& pool, std::int64_t address, std::int64_t size,
                    const AddressSpace* space) {
  if (unused_.empty()) {
    all_.emplace_back();
    unused_.push_back(&all_.back());
  }
  Block* const block = unused_.back();
  unused_.pop_back();
  block->pool = &pool;
  block->address = address;
  block->size = size;
  block->space = space;
  return block;
}

void Blocks::remove(Block* block) {
  if (block->before != nullptr) block->before->after = block->after;
  if (block->after != nullptr) block->after->before = block->before;
  *block = Block();
  unused_.push_back(block);
}

Block* Blocks::split(Block* block, std::int64_t size) {
  Block* const rest = make(*block->pool, block->address + size, block->size - size, block->space);
  rest->mapped = block->mapped;
  rest->before = block;
  rest->after = block->after;
  if (rest->after != nullptr) rest->after->before = rest;
  block->after = rest;
  block->size = size;
  return rest;
}

std::int64_t Blocks::merge(Block* block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free() || neighbour->mapped != block->mapped) return 0;
  if (neighbour->mapped)
    neighbour->pool->free.erase(neighbour);
  else
    neighbour->pool->unmapped.erase(neighbour);
  const std::int64_t size = neighbour->size;
  block->address = std::min(block->address, neighbour->address);
  block->size += size;
  remove(neighbour);
  return size;
}

}  // namespace lowtide::layout
