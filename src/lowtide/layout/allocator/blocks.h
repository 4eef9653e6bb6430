// The blocks of segments, and the pools that hold the free ones.
//
//   segment  | allocated | free | allocated | free         |
//   block      a        <-> b  <-> c       <-> d              linked in the order of addresses
//   pool                    b,                 d              ordered by size, then address
//
// Two free neighbours never lie side by side: they merge.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

namespace lowtide::layout {

using Stream = std::int32_t;

struct Pool;

// The address space of an expandable segment, of which whole pages are mapped to memory.
struct AddressSpace {
  std::int64_t address = 0, page = 0;
};

struct Block {
  std::int64_t address = 0, size = 0;
  Pool* pool = nullptr;
  const AddressSpace* space = nullptr;  // of blocks in expandable segments
  bool mapped = true;                   // false: there is no memory behind these addresses
  bool allocated = false;
  std::int64_t requested = 0;
  // Work that may still use the block after it was freed: the streams named since, then the events
  // that wait for them.
  std::vector<Stream> used_on;
  std::int32_t waits = 0;
  std::int64_t cached_at = 0;  // the count of searches when it came into its pool
  Block *before = nullptr, *after = nullptr;

  bool is_split() const { return before != nullptr || after != nullptr; }
  bool is_free() const { return !allocated && waits == 0 && used_on.empty(); }
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->address < b->address;
  }
};
struct ByAddress {
  bool operator()(const Block* a, const Block* b) const { return a->address < b->address; }
};

// The free blocks of one stream and one class of sizes.
struct Pool {
  bool small = false;
  Stream stream = 0;
  std::int64_t* searches = nullptr;  // counted over all streams of the class
  std::set<Block*, BySize> free;
  std::set<Block*, ByAddress> unmapped;

  void insert(Block* block) {
    block->cached_at = *searches;
    free.insert(block);
  }
};

// Owns all blocks.
class Blocks {
 public:
  Block* make(Pool& pool, std::int64_t address, std::int64_t size, const AddressSpace* space);
  void remove(Block* block);  // out of its segment's list too

  // Cuts the block at `size`, and returns the rest behind it.
  Block* split(Block* block, std::int64_t size);
  // Lets the block swallow that neighbour if it is free, and mapped or not as the block is; takes
  // the neighbour out of its pool. Returns the bytes it swallowed.
  std::int64_t merge(Block* block, Block* neighbour);

 private:
  std::deque<Block> all_;
  std::vector<Block*> unused_;
};

}  // namespace lowtide::layout
