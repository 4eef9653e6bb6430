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
  // Begins where the multipliers of all windows over these moments are.
  WindowBranch(const Problem& problem, std::vector<CutPoint> moments, const CutScale& scale,
               const WindowBound::Start& start);

  // Whole nodes, until so much work is done. Less if stopped, if so much is proven, or if nothing
  // is left to decide.
  void run(Ticks enough, std::int64_t work, Limits& limits);
  bool finished() const { return finished_; }
  // No plan obeys any decisions.
  bool infeasible() const { return finished_ && open_.empty() && closed_ == Ticks::max(); }
  // Proven beside the base duration.
  Ticks bound() const;

 private:
  // Decisions form a tree; `before` is that of the node above, -1: none.
  struct Decision {
    std::int32_t before;
    WindowBound::Fixed fixed;
  };
  struct Node {
    Ticks bound;
    std::int32_t last;  // decision; -1: none
    WindowBound::Fixed next;
    WindowBound::Start start;
  };
  static bool later(const Node& a, const Node& b) { return a.bound > b.bound; }

  // The plans that obey the decisions up to this one.
  void solve(std::int32_t last, Ticks bound, Ticks enough, Limits& limits);
  bool progresses(Ticks aim);
  void branch(const Node& node, Ticks enough, Limits& limits);

  WindowBound windows_;
  std::vector<Decision> decisions_;
  std::vector<Node> open_;  // a heap
  Ticks closed_ = Ticks::max();
  Ticks seen_;  // the bound when it was last looked at
  bool rooted_ = false, finished_ = false;
};

}  // namespace lowtide::solve::bounds
