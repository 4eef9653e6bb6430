// A request takes the best fit among the cached blocks of its pool, else memory of the device; when
// that has run out, it tries again after ever more of what is cached was given back.
#include "lowtide/layout/allocator/caching_allocator.h"

#include <algorithm>
#include <utility>

#include "lowtide/layout/allocator/sizes.h"

namespace lowtide::layout {

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, std::optional<Bytes> memory)
    : settings_(settings), cache_(settings, memory) {}

Block* CachingAllocator::allocate(Bytes requested, Stream stream) {
  cache_finished();
  const Bytes size = block_size(requested, settings_);
  Block* const block = find(cache_.pool_of(size, stream), size);
  levels_.reserved = cache_.memory().reserved();
  if (block == nullptr) return nullptr;

  const bool was_split = block->is_split();
  if (splits(block, size)) {
    const Bytes rest = Bytes(block->size) - size;
    cache_.split(block, size);
    if (block->space == nullptr && !was_split) levels_.inactive_split.add(rest);
  }
  if (block->space == nullptr && was_split) levels_.inactive_split.subtract(Bytes(block->size));
  block->allocated = true;
  block->requested = requested.count();
  levels_.allocated.add(Bytes(block->size));
  levels_.active.add(Bytes(block->size));
  levels_.requested.add(requested);
  ++counts_.allocations;
  return block;
}

Block* CachingAllocator::find(Pool& pool, Bytes size) {
  if (Block* const block = cache_.take(pool, size)) return block;
  cache_.collect_garbage();
  if (Block* const block = cache_.reserve(pool, size)) return block;
  if (cache_.free_oversize(pool, size))
    if (Block* const block = cache_.reserve(pool, size)) return block;
  empty_cache();
  ++counts_.retries;
  return cache_.reserve(pool, size);
}

bool CachingAllocator::splits(const Block* block, Bytes size) const {
  const Bytes rest = Bytes(block->size) - size;
  if (block->pool->small || settings_.expandable_segments) return rest >= kSmallestBlock;
  return (!settings_.max_split_size || size < *settings_.max_split_size) && rest > kLargestSmall;
}

void CachingAllocator::free(Block* block) {
  block->allocated = false;
  levels_.allocated.subtract(Bytes(block->size));
  if (block->used_on.empty()) {
    cache(block);
    return;
  }
  ++counts_.waits;
  block->waits = static_cast<std::int32_t>(block->used_on.size());
  for (const Stream stream : std::exchange(block->used_on, {}))
    waiting_[stream].blocks.push_back(block);
}

void CachingAllocator::cache(Block* block) {
  const Bytes size(block->size);
  levels_.active.subtract(size);
  levels_.requested.subtract(Bytes(block->requested));
  const Bytes swallowed = cache_.insert(block);
  if (block->space != nullptr) return;
  // What it swallowed was inactive before; the peak must not see it twice.
  if (block->is_split())
    levels_.inactive_split.add(size);
  else
    levels_.inactive_split.subtract(swallowed);
}

void CachingAllocator::use_on(Block* block, Stream stream) {
  auto& streams = block->used_on;
  if (stream != block->pool->stream && std::ranges::find(streams, stream) == streams.end())
    streams.push_back(stream);
}

void CachingAllocator::finish(Stream stream) {
  if (const auto at = waiting_.find(stream); at != waiting_.end())
    at->second.finished = at->second.blocks.size();
}

// That work is done is noticed at the next allocation.
void CachingAllocator::cache_finished() {
  for (auto& [stream, waiting] : waiting_)
    for (; waiting.finished > 0; --waiting.finished) {
      Block* const block = waiting.blocks.front();
      waiting.blocks.pop_front();
      if (--block->waits == 0) cache(block);
    }
}

void CachingAllocator::empty_cache() {
  for (auto& [stream, waiting] : waiting_) waiting.finished = waiting.blocks.size();
  cache_finished();
  cache_.free_all();
  levels_.reserved = cache_.memory().reserved();
}

AllocatorCounts CachingAllocator::counts() const {
  AllocatorCounts counts = cache_.counts();
  counts.allocations = counts_.allocations;
  counts.retries = counts_.retries;
  counts.waits = counts_.waits;
  counts.device_allocations = cache_.memory().allocations();
  counts.device_frees = cache_.memory().frees();
  return counts;
}

void CachingAllocator::reset_peaks() {
  cache_.memory().reserved().reset_peak();
  levels_.reset_peaks();
}

}  // namespace lowtide::layout
