#include "lowtide/layout/allocator/expandable.h"

#include <algorithm>

namespace lowtide::layout {

namespace {

bool has_room(const Block* block, std::int64_t size) {
  for (; size > 0 && block != nullptr && block->is_free(); block = block->after)
    size -= block->size;
  return size <= 0;
}

}  // namespace

Block* ExpandableSegments::grow(Pool& pool, std::int64_t size, std::int64_t page) {
  if (size > memory_.expandable_size(page)) return nullptr;
  Block* block = find(pool, size, page);
  if (!block->mapped && !map(block, std::min(block->size, size))) return nullptr;
  while (block->size < size) {
    Block* const next = block->after;  // unmapped: mapping it merges `block` into it
    if (!map(next, std::min(size - block->size, next->size))) return nullptr;
    block = next;
  }
  pool.free.erase(block);
  return block;
}

Block* ExpandableSegments::find(Pool& pool, std::int64_t size, std::int64_t page) {
  for (Block* const unmapped : pool.unmapped) {
    Block* const before = unmapped->before;
    Block* const first = before != nullptr && before->is_free() ? before : unmapped;
    if (has_room(first, size)) return first;
  }
  const std::int64_t space = memory_.expandable_size(page);
  spaces_.push_back({memory_.addresses(space), page});
  Block* const block = blocks_.make(pool, spaces_.back().address, space, &spaces_.back());
  block->mapped = false;
  pool.unmapped.insert(block);
  return block;
}

bool ExpandableSegments::map(Block* block, std::int64_t size) {
  const std::int64_t page = block->space->page;
  const std::int64_t mapped = (size + page - 1) / page * page;  // unmapped blocks begin with a page
  if (!memory_.take(mapped)) return false;
  Pool& pool = *block->pool;
  pool.unmapped.erase(block);
  if (mapped < block->size) pool.unmapped.insert(blocks_.split(block, mapped));
  block->mapped = true;
  blocks_.merge(block, block->before);
  blocks_.merge(block, block->after);
  pool.insert(block);
  return true;
}

bool ExpandableSegments::shrink(Block* block) {
  const std::int64_t page = block->space->page, base = block->space->address;
  const std::int64_t offset = block->address - base;
  const std::int64_t begin = (offset + page - 1) / page * page;
  const std::int64_t end = (offset + block->size) / page * page;
  if (begin >= end) return false;
  Pool& pool = *block->pool;
  pool.free.erase(block);
  if (begin > offset) {
    Block* const pages = blocks_.split(block, begin - offset);
    pool.insert(block);
    block = pages;
  }
  if (end - begin < block->size) pool.insert(blocks_.split(block, end - begin));
  block->mapped = false;
  blocks_.merge(block, block->before);
  blocks_.merge(block, block->after);
  memory_.give_back(end - begin);
  if (block->is_split())
    pool.unmapped.insert(block);
  else
    blocks_.remove(block);  // the whole segment: its addresses are given up
  return true;
}

}  // namespace lowtide::layout
