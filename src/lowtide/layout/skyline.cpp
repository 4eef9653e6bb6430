// A segment is found by its first section, so the heap needs no links into the list.
#include "lowtide/layout/skyline.h"

#include <algorithm>
#include <functional>

namespace lowtide::layout {

Skyline::Skyline(std::span<const Item> items, std::int32_t sections)
    : items_(items),
      sections_(sections),
      tree_(items),
      segments_(at(sections)),
      offsets_(items.size()) {}

void Skyline::set(std::int32_t first, std::int32_t last, std::int32_t previous,
                  std::int64_t height) {
  // Neighbours of the same height become one segment.
  if (previous >= 0 && segment(previous).height == height) {
    segment(first).height = -1;
    first = previous;
    previous = segment(first).previous;
  }
  if (last < sections_ && segment(last).height == height) {
    const std::int32_t joined = last;
    last = segment(joined).last;
    segment(joined).height = -1;
  }
  segment(first) = {previous, last, height};
  if (previous >= 0) segment(previous).last = first;
  if (last < sections_) segment(last).previous = first;
  heap_.push_back({height, first});
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

std::int32_t Skyline::lowest() {
  while (true) {
    const Valley valley = heap_.front();
    if (segment(valley.first).height == valley.height) return valley.first;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }
}

std::int64_t Skyline::raise(std::int32_t first) {
  const Segment valley = segment(first);
  std::int64_t height = INT64_MAX;
  if (valley.previous >= 0) height = segment(valley.previous).height;
  if (valley.last < sections_) height = std::min(height, segment(valley.last).height);
  set(first, valley.last, valley.previous, height);
  return height;
}

void Skyline::put(const Item& item, std::int32_t valley) {
  const Segment filled = segment(valley);
  std::int32_t previous = filled.previous;
  segment(valley).height = -1;
  if (valley < item.first) {
    set(valley, item.first, previous, filled.height);
    previous = valley;
  }
  if (item.last < filled.last) set(item.last, filled.last, item.first, filled.height);
  set(item.first, item.last, previous, filled.height + item.size);
}

void Skyline::begin(std::span<const std::int32_t> ranks) {
  tree_.reset(ranks);
  heap_.clear();
  std::ranges::fill(segments_, Segment{-1, -1, -1});
  if (sections_ > 0) set(0, sections_, -1, 0);
}

std::int64_t Skyline::dive(std::span<const std::int32_t> ranks, std::int64_t most, Limits& limits) {
  begin(ranks);
  std::int64_t height = 0;
  std::int64_t looked = tree_.looks();
  for (std::size_t left = items_.size(); left > 0;) {
    const std::int32_t valley = lowest();
    const Segment here = segment(valley);
    const std::int32_t found = tree_.best_within(valley, here.last);
    if (limits.spend(1 + (tree_.looks() - looked) / 64)) return kGaveUp;
    looked = tree_.looks();
    if (found < 0) {
      raise(valley);
      continue;
    }
    const Item& item = items_[at(found)];
    height = std::max(height, here.height + item.size);
    if (height > most) return kGaveUp;
    offsets_[at(found)] = here.height;
    tree_.remove(found);
    put(item, valley);
    --left;
  }
  return height;
}

}  // namespace lowtide::layout
