// Problem: close the duality gap of the Lagrangian bound (cut_search.cpp). At the best multiplier
// two cuts are optimal: one keeps too many bytes, the other too few.
//
// Idea: branch on the largest tensor in which the two cuts differ. In every plan it is either live
// at the cut point or not. In both branches the bound is maximized again over the multiplier,
// starting from the multiplier of the parent node. The open node with the smallest bound is next,
// so its bound is that of the whole search.
//
// Source: A. Land and A. Doig, An automatic method of solving discrete programming problems,
// Econometrica 1960.
//
// Invariant: every plan obeys the decisions of an open node, or those of a node whose bound is in
// `closed_`, or it takes at least as long as the best cut that keeps the budget.
//
// Loses: if many small tensors of similar value remain. Fixing one of them hardly raises the bound.
#include "lowtide/solve/bounds/cut/cut_branch.h"

#include <algorithm>

namespace lowtide::solve::bounds {

CutBranch::CutBranch(CutSearch& search, const CutFound& first) : search_(search) {
  if (!first.infeasible) open({first.extra, first.multiplier, -1, first.branch});
}

Ticks CutBranch::bound() const {
  const Ticks least = open_.empty() ? Ticks::max() : open_.front().bound;
  const Ticks bound = std::min({least, closed_, incumbent()});
  return bound == Ticks::max() ? Ticks(0) : bound;
}

bool CutBranch::finished() const {
  return open_.empty() || open_.front().bound >= std::min(incumbent(), closed_);
}

void CutBranch::open(const Node& node) {
  if (node.branch < 0) {
    closed_ = std::min(closed_, node.bound);
    return;
  }
  open_.push_back(node);
  std::push_heap(open_.begin(), open_.end(), later);
}

void CutBranch::run(Ticks enough, std::int64_t nodes) {
  const std::int64_t until = this->nodes() + nodes;
  while (!finished() && open_.front().bound < enough && this->nodes() < until) {
    std::pop_heap(open_.begin(), open_.end(), later);
    const Node node = open_.back();
    open_.pop_back();
    if (branch(node, Hold::kept, enough) && branch(node, Hold::dropped, enough)) continue;
    // Stopped: reopen the node, which covers the branches that were not finished.
    open(node);
    return;
  }
}

// Makes the branch of `node` in which its choice has the decision `hold`, and opens it unless it
// cannot improve on the incumbent. Returns false if the search was stopped.
bool CutBranch::branch(const Node& node, Hold hold, Ticks enough) {
  const auto at = static_cast<std::int32_t>(path_.size());
  path_.push_back({node.path, node.branch, hold});
  holds_.clear();
  for (std::int32_t i = at; i >= 0; i = path_[static_cast<std::size_t>(i)].before) {
    const Decision& decision = path_[static_cast<std::size_t>(i)];
    holds_.emplace_back(decision.choice, decision.hold);
  }
  const CutAim aim{node.multiplier, Ticks(0), std::min(enough, incumbent())};
  const CutFound found = search_.maximise(holds_, aim);
  if (found.stopped) return false;
  if (found.infeasible) return true;
  const Ticks bound = std::max(node.bound, found.extra);
  if (bound < incumbent()) open({bound, found.multiplier, at, found.branch});
  return true;
}

}  // namespace lowtide::solve::bounds
