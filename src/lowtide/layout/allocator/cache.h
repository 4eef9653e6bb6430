// The memory that is reserved and free: which block serves a request best, and what is given back
// to the device when memory runs out.
#pragma once

#include <array>
#include <map>
#include <optional>

#include "lowtide/layout/allocator/blocks.h"
#include "lowtide/layout/allocator/device_memory.h"
#include "lowtide/layout/allocator/expandable.h"
#include "lowtide/layout/allocator/figures.h"
#include "lowtide/layout/allocator/settings.h"

namespace lowtide::layout {

class Cache {
 public:
  Cache(const AllocatorSettings& settings, std::optional<Bytes> memory);
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  Pool& pool_of(Bytes block, Stream stream);
  // The best fit, taken out of the pool; null if there is none.
  Block* take(Pool& pool, Bytes size);
  // A free block of at least that size from the device's memory; null if that has run out.
  Block* reserve(Pool& pool, Bytes size);
  // Cuts the block at `size`; the rest goes into the pool.
  void split(Block* block, Bytes size);
  // Merges the block with its free neighbours and puts it into its pool. Returns their bytes.
  Bytes insert(Block* block);

  // Gives back segments that were not used for long, until the garbage collection's threshold is
  // kept. Nothing without that setting.
  void collect_garbage();
  // Gives back segments above max_split_size_mb, if that makes room for a block of this size; false
  // if it does not.
  bool free_oversize(const Pool& pool, Bytes size);
  // Gives back all segments, and pages of expandable ones, in which nothing is allocated.
  void free_all();

  DeviceMemory& memory() { return memory_; }
  const DeviceMemory& memory() const { return memory_; }
  // Those of the rules of this file.
  const AllocatorCounts& counts() const { return counts_; }

 private:
  enum SizeClass : std::uint8_t { kSmall, kLarge };

  bool collects_garbage() const;
  void give_back(Block* segment);

  AllocatorSettings settings_;
  std::optional<Bytes> allowed_;  // of the device's memory, if less than all
  DeviceMemory memory_;
  Blocks blocks_;
  ExpandableSegments expandable_{blocks_, memory_};
  std::array<std::int64_t, 2> searches_{};
  std::array<std::map<Stream, Pool>, 2> pools_;  // of each size class
  AllocatorCounts counts_;
};

}  // namespace lowtide::layout
