// With expandable segments every block is in one; without, none is. So each rule meets blocks of
// one kind only.
#include "lowtide/layout/allocator/cache.h"

#include <iterator>

#include "lowtide/base/error.h"
#include "lowtide/layout/allocator/sizes.h"

namespace lowtide::layout {

namespace {

Bytes share(double fraction, Bytes of) {
  return Bytes(static_cast<std::int64_t>(fraction * static_cast<double>(of.count())));
}

std::optional<Bytes> allowed_of(const AllocatorSettings& settings, std::optional<Bytes> memory) {
  if (settings.memory_fraction >= 1) return {};
  if (!memory)
    throw InputError("per_process_memory_fraction",
                     "is a share of the device's memory, which is not given: name it too");
  return share(settings.memory_fraction, *memory);
}

// To what size a free block of an expandable segment can grow.
std::int64_t expanded_size(const Block* block) {
  const Block* const next = block->after;
  return block->size + (next != nullptr && !next->mapped ? next->size : 0);
}

}  // namespace

Cache::Cache(const AllocatorSettings& settings, std::optional<Bytes> memory)
    : settings_(settings), allowed_(allowed_of(settings, memory)), memory_(memory) {}

Pool& Cache::pool_of(Bytes block, Stream stream) {
  const SizeClass size_class = block <= kLargestSmall ? kSmall : kLarge;
  const auto [at, is_new] = pools_.at(size_class).try_emplace(stream);
  if (is_new) {
    at->second.small = size_class == kSmall;
    at->second.stream = stream;
    at->second.searches = &searches_.at(size_class);
  }
  return at->second;
}

// The smallest free block that is large enough; of those, the one with the lowest address.
Block* Cache::take(Pool& pool, Bytes size) {
  if (collects_garbage()) ++*pool.searches;
  Block key;
  key.size = size.count();
  auto best = pool.free.lower_bound(&key);
  if (best == pool.free.end()) return nullptr;
  // A block that can grow counts as large as it can become.
  if (settings_.expandable_segments)
    for (auto next = std::next(best);
         next != pool.free.end() && expanded_size(*next) < expanded_size(*best); ++next)
      best = next;
  Block* const block = *best;
  if (settings_.max_split_size) {
    const Bytes limit = *settings_.max_split_size, found(block->size);
    const bool refused =
        size < limit ? found >= limit : found >= size + settings_.max_non_split_rounding;
    counts_.oversize_refusals += refused ? 1 : 0;
    if (refused) return nullptr;
  }
  pool.free.erase(best);
  return block;
}

Block* Cache::reserve(Pool& pool, Bytes size) {
  const Bytes segment = segment_size(size, settings_);
  if (allowed_ && memory_.reserved().now + segment > *allowed_) return nullptr;
  if (settings_.expandable_segments) {
    const Bytes page = pool.small ? kSmallSegment : settings_.large_segment;
    return expandable_.grow(pool, size.count(), page.count());
  }
  if (!memory_.take(segment.count())) return nullptr;
  return blocks_.make(pool, memory_.addresses(segment.count()), segment.count(), nullptr);
}

void Cache::split(Block* block, Bytes size) {
  ++counts_.splits;
  block->pool->insert(blocks_.split(block, size.count()));
}

Bytes Cache::insert(Block* block) {
  Bytes swallowed;
  for (Block* const neighbour : {block->before, block->after}) {
    const std::int64_t bytes = blocks_.merge(block, neighbour);
    counts_.merges += bytes > 0 ? 1 : 0;
    swallowed += Bytes(bytes);
  }
  block->pool->insert(block);
  return swallowed;
}

bool Cache::collects_garbage() const {
  return allowed_ && settings_.garbage_collection_threshold > 0 && !settings_.expandable_segments;
}

// Of the large class, whole segments that were not used for at least the mean of their ages; again
// with the mean of the rest while too much is reserved.
void Cache::collect_garbage() {
  if (!collects_garbage()) return;
  const Bytes threshold = share(settings_.garbage_collection_threshold, *allowed_);
  const auto age = [&](const Block* block) { return searches_.at(kLarge) - block->cached_at; };
  std::int64_t ages = 0, count = 0;
  for (const auto& [stream, pool] : pools_.at(kLarge))
    for (const Block* block : pool.free)
      if (!block->is_split()) ages += age(block), ++count;
  for (bool found = true; found && memory_.reserved().now > threshold && count > 0;) {
    const double mean = static_cast<double>(ages) / static_cast<double>(count);
    found = false;
    for (auto& [stream, pool] : pools_.at(kLarge))
      for (auto at = pool.free.begin(); at != pool.free.end();) {
        Block* const block = *at++;
        if (block->is_split() || static_cast<double>(age(block)) < mean) continue;
        found = true;
        ages -= age(block);
        --count;
        ++counts_.collected;
        give_back(block);
      }
  }
}

// The smallest segment that is large enough, or the largest ones until they are together.
bool Cache::free_oversize(const Pool& pool, Bytes size) {
  if (!settings_.max_split_size || settings_.expandable_segments) return false;
  const std::int64_t limit = settings_.max_split_size->count();
  Block key;
  key.size = std::max(size.count(), limit);
  auto at = pool.free.lower_bound(&key);
  std::int64_t freed = 0;
  const auto free_one = [&](Block* segment) {
    freed += segment->size;
    ++counts_.oversize_frees;
    give_back(segment);
  };
  if (at != pool.free.end())
    free_one(*at);
  else
    while (freed < key.size && !pool.free.empty() && (*pool.free.rbegin())->size >= limit)
      free_one(*pool.free.rbegin());
  return freed >= key.size;
}

void Cache::free_all() {
  for (const SizeClass size_class : {kLarge, kSmall})
    for (auto& [stream, pool] : pools_.at(size_class)) {
      const std::vector<Block*> cached(pool.free.begin(), pool.free.end());
      for (Block* const block : cached) {
        if (block->space != nullptr) {
          counts_.unmaps += expandable_.shrink(block) ? 1 : 0;
        } else if (!block->is_split()) {
          give_back(block);
        }
      }
    }
}

void Cache::give_back(Block* segment) {
  memory_.give_back(segment->size);
  segment->pool->free.erase(segment);
  blocks_.remove(segment);
}

}  // namespace lowtide::layout
