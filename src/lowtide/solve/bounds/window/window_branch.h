// Branch and bound over the tensors live at a few cut points. Private to the solver; see
// window_branch.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/bounds/window/window_bound.h"

namespace lowtide::solve::bounds {

class WindowBranch {
 public:
  // Starts from the multipliers of all windows over these cut points.
  WindowBranch(const Problem& problem, std::vector<CutPoint> moments, const CutScale& scale,
               const WindowBound::Start& start);

  // Processes whole nodes until this work is done. Less if stopped, if `enough` is proven, or if no
  // node is left.
  void run(Ticks enough, std::int64_t work, Limits& limits);
  bool finished() const { return finished_; }
  // Proven: the budget is infeasible.
  bool infeasible() const { return finished_ && open_.empty() && closed_ == Ticks::max(); }
  // A lower bound on the time beyond the base duration.
  Ticks bound() const;

 private:
  // Decisions form a tree; `before` is the decision of the parent node, -1: none.
  struct Decision {
    std::int32_t before;
    WindowBound::Fixed fixed;
  };
  struct Node {
    Ticks bound;
    std::int32_t last;  // last decision; -1: none
    WindowBound::Fixed next;
    WindowBound::Start start;
  };
  static bool later(const Node& a, const Node& b) { return a.bound > b.bound; }

  // The decisions from the root to this one.
  void solve(std::int32_t last, Ticks bound, Ticks enough, Limits& limits);
  bool progresses(Ticks aim);
  void branch(const Node& node, Ticks enough, Limits& limits);

  WindowBound windows_;
  std::vector<Decision> decisions_;
  std::vector<Node> open_;  // a heap
  Ticks closed_ = Ticks::max();
  Ticks seen_;  // the bound at the last poll
  bool rooted_ = false, finished_ = false;
};

}  // namespace lowtide::solve::bounds
