// Problem: windows may hold a fraction of a tensor. With a few large tensors this is most of the
// gap.
//
// Idea: branch on the largest tensor that is held in part at one of the cut points: in every plan
// it is either live there or not. In both branches the multipliers are optimized again, starting
// from the parent's. Best-first, so the bound is that of the next node.
//
// Source: A. Land and A. Doig, An automatic method of solving discrete programming problems,
// Econometrica 1960; multipliers passed on from node to node: M. Held and R. Karp, 1971.
//
// Invariant: every plan obeys the decisions of an open node, or of a node closed with at least
// `closed_`, or exceeds the budget.
//
// Loses: a node costs a hundred times as much as with one cut point. If many small tensors remain,
// the bound hardly rises.
#include "lowtide/solve/bounds/window/window_branch.h"

#include <algorithm>
#include <utility>

namespace lowtide::solve::bounds {

namespace {

constexpr std::size_t kMostNumbers = 10'000'000;  // in the multipliers of all open nodes
// After so many decisions the bound must have come closer to `enough` by one part in so many.
constexpr std::size_t kLook = 64;
constexpr std::int64_t kProgress = 400;

}  // namespace

WindowBranch::WindowBranch(const Problem& problem, std::vector<CutPoint> moments,
                           const CutScale& scale, const WindowBound::Start& start)
    : windows_(problem, std::move(moments), scale, WindowSet::all) {
  windows_.begin(start, {});
}

Ticks WindowBranch::bound() const {
  const Ticks least = open_.empty() ? Ticks::max() : open_.front().bound;
  const Ticks bound = std::min(least, closed_);
  return bound == Ticks::max() ? Ticks(0) : bound;
}

void WindowBranch::run(Ticks enough, std::int64_t work, Limits& limits) {
  const std::int64_t until = limits.work() + work;
  if (!rooted_) {
    solve(-1, Ticks(0), enough, limits);
    if (limits.stopped()) return;
    rooted_ = true;
  }
  while (!finished_ && !limits.stopped() && limits.work() < until) {
    const std::size_t numbers = open_.empty() ? 0 : open_.front().start.size();
    finished_ = open_.empty() || open_.front().bound >= std::min(enough, closed_) ||
                open_.size() * numbers > kMostNumbers;
    if (finished_) return;
    std::pop_heap(open_.begin(), open_.end(), later);
    Node node = std::move(open_.back());
    open_.pop_back();
    branch(node, enough, limits);
    if (!limits.stopped()) {
      finished_ |= decisions_.size() % kLook == 0 && !progresses(std::min(enough, closed_));
      continue;
    }
    // The node covers the branches that were not finished.
    open_.push_back(std::move(node));
    std::push_heap(open_.begin(), open_.end(), later);
  }
}

bool WindowBranch::progresses(Ticks aim) {
  const Ticks before = std::exchange(seen_, bound());
  const Ticks left = aim == Ticks::max() ? seen_ : aim - seen_;
  return seen_ - before >= Ticks(left.count() / kProgress);
}

void WindowBranch::branch(const Node& node, Ticks enough, Limits& limits) {
  std::vector<WindowBound::Fixed> fixed;
  for (const bool live : {node.next.live, !node.next.live}) {
    decisions_.push_back({node.last, {node.next.moment, node.next.tensor, live}});
    const auto last = static_cast<std::int32_t>(decisions_.size()) - 1;
    fixed.clear();
    for (std::int32_t i = last; i >= 0; i = decisions_[static_cast<std::size_t>(i)].before)
      fixed.push_back(decisions_[static_cast<std::size_t>(i)].fixed);
    if (!windows_.has_room_for(fixed)) continue;
    windows_.begin(node.start, fixed);
    solve(last, node.bound, enough, limits);
    if (limits.stopped()) return;
  }
}

void WindowBranch::solve(std::int32_t last, Ticks bound, Ticks enough, Limits& limits) {
  while (!windows_.finished() && windows_.bound() < enough) {
    windows_.run(1, limits);
    if (limits.stopped()) return;
  }
  if (windows_.infeasible()) return;
  bound = std::max(bound, windows_.bound());
  const auto next = windows_.in_part();
  if (bound >= enough || !next) {
    closed_ = std::min(closed_, bound);
    return;
  }
  open_.push_back({bound, last, *next, windows_.start()});
  std::push_heap(open_.begin(), open_.end(), later);
}

}  // namespace lowtide::solve::bounds
