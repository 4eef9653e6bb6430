// Expandable segments: address space for more than the device has, of which whole pages get memory
// when a request needs them, and lose it when memory runs out.
//
//   space   | allocated | free | unmapped ..................... |
//   pages   |     mapped       |
#pragma once

#include <deque>

#include "lowtide/layout/allocator/blocks.h"
#include "lowtide/layout/allocator/device_memory.h"

namespace lowtide::layout {

class ExpandableSegments {
 public:
  ExpandableSegments(Blocks& blocks, DeviceMemory& memory) : blocks_(blocks), memory_(memory) {}

  // A free block of at least `size`, taken out of the pool: at the lowest address at which free and
  // unmapped blocks together have room, in a new segment if none has. Null if memory runs out; what
  // was mapped until then stays in the pool.
  Block* grow(Pool& pool, std::int64_t size, std::int64_t page);

  // Gives back the whole pages of a free block; what lies before and behind them stays in the pool.
  // False if it has none.
  bool shrink(Block* block);

 private:
  Block* find(Pool& pool, std::int64_t size, std::int64_t page);
  // Maps the pages of the first `size` bytes, and merges with free neighbours.
  bool map(Block* block, std::int64_t size);

  Blocks& blocks_;
  DeviceMemory& memory_;
  std::deque<AddressSpace> spaces_;
};

}  // namespace lowtide::layout
