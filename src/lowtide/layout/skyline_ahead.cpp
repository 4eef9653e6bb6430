// The dive within a capacity. Before an item is placed, each section is looked at that it could
// doom: one that lies lower than the item's top, and that no open item can fill any more without
// lying above that top or above the skyline on the other side. Such a section rises, and what is
// still to be placed in it may then not fit under the capacity. So an item is passed over only if
// no placement that goes on from it is within the capacity. What is doomed later is not seen.
#include <algorithm>
#include <utility>
#include <vector>

#include "lowtide/layout/skyline.h"

namespace lowtide::layout {

namespace {
// For one place: the items that are passed over, the depth of the look in fillers, and the stairs
// that are looked at on a side.
constexpr std::size_t kMostPassed = 32;
constexpr int kDepth = 4, kStairs = 64;
}  // namespace

std::int64_t Skyline::dive_within(std::span<const std::int32_t> ranks, std::int64_t capacity,
                                  std::span<const std::int64_t> loads, Limits& limits) {
  begin(ranks);
  left_.reset(loads);
  std::int64_t height = 0;
  for (std::size_t left = items_.size(); left > 0;) {
    const std::int32_t valley = lowest();
    const Segment here = segment(valley);
    const std::int32_t found = best_ahead(valley, capacity, limits);
    if (limits.stopped()) return kGaveUp;
    if (found < 0) {
      const std::int64_t risen = raise(valley);
      if (risen + left_.largest(valley, here.last).value > capacity) return kGaveUp;
      continue;
    }
    const Item& item = items_[at(found)];
    height = std::max(height, here.height + item.size);
    offsets_[at(found)] = here.height;
    tree_.remove(found);
    left_.raise(item.first, item.last, -item.size);
    put(item, valley);
    --left;
  }
  return height;
}

// The best-ranked item of the valley after which every section can still be completed, as far as
// the look ahead sees; none: -1.
std::int32_t Skyline::best_ahead(std::int32_t valley, std::int64_t capacity, Limits& limits) {
  const std::int32_t last = segment(valley).last;
  std::vector<std::pair<std::int32_t, std::int32_t>> passed;  // items and their ranks
  std::int32_t found = -1;
  const std::int64_t looked = tree_.looks();
  while (passed.size() < kMostPassed) {
    const std::int32_t best = tree_.best_within(valley, last);
    if (best < 0) break;
    const std::int32_t rank = tree_.rank(best);
    tree_.remove(best);
    if (!dooms(items_[at(best)], valley, capacity)) {
      tree_.put_back(best, rank);
      found = best;
      break;
    }
    passed.emplace_back(best, rank);
  }
  for (const auto& [item, rank] : passed) tree_.put_back(item, rank);
  limits.spend(1 + (tree_.looks() - looked) / 64);
  return found;
}

// Whether, with the item placed, an item above it or a section beside it exceeds the capacity.
bool Skyline::dooms(const Item& item, std::int32_t valley, std::int64_t capacity) {
  return tree_.has_larger(item.first, item.last, capacity - segment(valley).height - item.size) ||
         loses_beside(item, valley, false, capacity) || loses_beside(item, valley, true, capacity);
}

// On one side of the item the skyline goes up in stairs, until it is as high as the item's top.
// What lay on a stair could reach over all lower ones and the item's place, and now ends at the
// item.
bool Skyline::loses_beside(const Item& item, std::int32_t valley, bool behind,
                           std::int64_t capacity) {
  const Segment& here = segment(valley);
  const std::int64_t top = here.height + item.size;
  Gap gap{behind ? item.last : valley, behind ? here.last : item.first, 0};
  std::int64_t stair = here.height;
  std::int32_t next = behind ? here.last : here.previous;
  for (int steps = 0; steps < kStairs; ++steps) {
    const bool is_border = next < 0 || next >= sections_;
    const std::int64_t height = is_border ? INT64_MAX : segment(next).height;
    if (height > stair) {
      gap.rim = std::min(top, height);
      if (loses(gap, gap.first, gap.last, capacity, 0)) return true;
      stair = height;
    }
    if (height >= top) return false;
    (behind ? gap.last : gap.first) = behind ? segment(next).last : next;
    next = behind ? segment(next).last : segment(next).previous;
  }
  return false;
}

// Whether a section of this part of the gap needs more than the capacity when it rises, and no open
// item fills it before.
bool Skyline::loses(const Gap& gap, std::int32_t first, std::int32_t last, std::int64_t capacity,
                    int depth) {
  if (first >= last || depth == kDepth) return false;
  const RangeMaxTree::Largest tightest = left_.largest(first, last);
  if (gap.rim + tightest.value <= capacity) return false;
  const std::int32_t filler = tree_.best_within(gap.first, gap.last, tightest.section);
  if (filler < 0) return tightest.value > 0;
  const Item& item = items_[at(filler)];
  return loses(gap, first, item.first, capacity, depth + 1) ||
         loses(gap, item.last, last, capacity, depth + 1);
}

}  // namespace lowtide::layout
