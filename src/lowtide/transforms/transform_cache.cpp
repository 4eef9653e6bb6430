// Problem: a search over lists of transforms plans, verifies and extends each list many times.
// Applying the list often takes longer than planning its graph.
//
// Idea: the transformed graph depends on the list alone, so it is cached with the list; the least
// recently used lists are dropped.
//
// Loses: each look-up compares the list with all cached lists, so the cache must be small; the
// cached graphs take memory.
#include "lowtide/transforms/transform_cache.h"

#include <algorithm>
#include <utility>

namespace lowtide {

namespace {

// The most ops of all cached graphs together; an op takes one or two kilobytes. Two graphs are
// cached whatever their size.
constexpr std::size_t kMostOps = 150'000, kLeastGraphs = 2;

bool begins_with(std::span<const Transform> list, const std::vector<Transform>& start) {
  return start.size() <= list.size() && std::ranges::equal(start, list.first(start.size()));
}

}  // namespace

std::shared_ptr<const Applied> TransformCache::apply(std::span<const Transform> transforms) {
  const Entry from = longest_prefix(transforms);
  if (from && from->transforms.size() == transforms.size()) return from;
  std::vector<Transform> list(transforms.begin(), transforms.end());
  TransformedGraph transformed =
      from ? apply_further(graph_, *from, transforms.subspan(from->transforms.size()))
           : apply_transforms(graph_, transforms);
  return add({std::move(list), std::move(transformed)});
}

std::shared_ptr<const Applied> TransformCache::add(Applied applied) {
  auto entry = std::make_shared<const Applied>(std::move(applied));
  put(entry);
  return entry;
}

TransformCache::Entry TransformCache::longest_prefix(std::span<const Transform> transforms) {
  const std::lock_guard lock(mutex_);
  auto best = entries_.end();
  for (auto one = entries_.begin(); one != entries_.end(); ++one)
    if ((best == entries_.end() || (*one)->transforms.size() > (*best)->transforms.size()) &&
        begins_with(transforms, (*one)->transforms))
      best = one;
  if (best == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, best);
  return entries_.front();
}

void TransformCache::put(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(entries_,
                          [&](const Entry& one) { return one->transforms == entry->transforms; }))
    return;  // another thread was faster
  ops_ += entry->now.graph.op_count();
  entries_.push_front(std::move(entry));
  while (ops_ > kMostOps && entries_.size() > kLeastGraphs) {
    ops_ -= entries_.back()->now.graph.op_count();
    entries_.pop_back();
  }
}

}  // namespace lowtide
