// A model of PyTorch's caching allocator for CUDA (its native backend): which block each request
// gets, and what is reserved for it. docs/reference/allocator.md has the rules in words.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "lowtide/layout/allocator/cache.h"

namespace lowtide::layout {

class CachingAllocator {
 public:
  // `memory`: what the device has for this allocator; absent: without a limit. Throws InputError if
  // the settings limit a share of memory that is not given.
  CachingAllocator(const AllocatorSettings& settings, std::optional<Bytes> memory);

  // Null if memory runs out even after all that is cached was given back. The block belongs to the
  // allocator; its address and size stay until it is freed. `requested` is above 0.
  Block* allocate(Bytes requested, Stream stream);
  void free(Block* block);
  // The stream works with a block of another stream: when that is freed, it waits until the work is
  // done (torch.Tensor.record_stream).
  void use_on(Block* block, Stream stream);
  // All work of the stream so far is done.
  void finish(Stream stream);
  // Gives back all that is cached, as torch.cuda.empty_cache does.
  void empty_cache();

  const AllocatorLevels& levels() const { return levels_; }
  AllocatorCounts counts() const;
  void reset_peaks();

 private:
  struct Waiting {
    std::deque<Block*> blocks;  // freed, in order
    std::size_t finished = 0;   // the first of them, whose work is done
  };

  Block* find(Pool& pool, Bytes size);
  bool splits(const Block* block, Bytes size) const;
  void cache(Block* block);
  void cache_finished();

  AllocatorSettings settings_;
  Cache cache_;
  std::map<Stream, Waiting> waiting_;
  AllocatorLevels levels_;
  AllocatorCounts counts_;
};

}  // namespace lowtide::layout
