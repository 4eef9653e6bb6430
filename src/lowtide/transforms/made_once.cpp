// Problem: a search over lists of transforms plans, verifies and extends each list many times, and
// to make its graph takes longer than many a look at it.
//
// Idea: the graph depends on the list alone, so it is kept with it.
//
// Loses: a list is compared with all that are kept, so there are few; and they take memory.
#include "lowtide/transforms/made_once.h"

#include <algorithm>
#include <utility>

namespace lowtide {

namespace {

// Ops of all graphs together, of which each takes a kilobyte or two; but two graphs in any case.
constexpr std::size_t kMostOps = 150'000, kLeastGraphs = 2;

bool begins_with(std::span<const Transform> list, const std::vector<Transform>& start) {
  return start.size() <= list.size() && std::ranges::equal(start, list.first(start.size()));
}

}  // namespace

std::shared_ptr<const Applied> MadeOnce::of(std::span<const Transform> transforms) {
  const Kept from = longest(transforms);
  if (from && from->transforms.size() == transforms.size()) return from;
  std::vector<Transform> list(transforms.begin(), transforms.end());
  Transformed made = from
                         ? apply_further(graph_, *from, transforms.subspan(from->transforms.size()))
                         : apply_transforms(graph_, transforms);
  return keep({std::move(list), std::move(made)});
}

std::shared_ptr<const Applied> MadeOnce::keep(Applied made) {
  auto kept = std::make_shared<const Applied>(std::move(made));
  put(kept);
  return kept;
}

MadeOnce::Kept MadeOnce::longest(std::span<const Transform> transforms) {
  const std::lock_guard lock(mutex_);
  auto best = kept_.end();
  for (auto one = kept_.begin(); one != kept_.end(); ++one)
    if ((best == kept_.end() || (*one)->transforms.size() > (*best)->transforms.size()) &&
        begins_with(transforms, (*one)->transforms))
      best = one;
  if (best == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, best);
  return kept_.front();
}

void MadeOnce::put(Kept made) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(kept_,
                          [&](const Kept& one) { return one->transforms == made->transforms; }))
    return;  // another thread was faster
  ops_ += made->now.graph.op_count();
  kept_.push_front(std::move(made));
  while (ops_ > kMostOps && kept_.size() > kLeastGraphs) {
    ops_ -= kept_.back()->now.graph.op_count();
    kept_.pop_back();
  }
}

}  // namespace lowtide
