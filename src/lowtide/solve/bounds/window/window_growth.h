// Windows over cut points that are selected one by one, each where the relaxed solution most
// exceeds the budget. Private to the solver; see window_growth.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/bounds/cut/cut_point.h"
#include "lowtide/solve/bounds/window/window_bound.h"

namespace lowtide::solve::bounds {

class WindowGrowth {
 public:
  // Starts with one cut point; the others are selected from `candidates`. `most`: the largest
  // number at a time.
  WindowGrowth(const Problem& problem, const CutScale& scale, CutPoint first,
               std::vector<CutPoint> candidates, std::size_t most);

  // Does about this much work, or less if stopped or without gain. `proven`: the bound of other
  // relaxations.
  void run(std::int64_t work, Ticks proven, Limits& limits);
  bool finished() const { return finished_; }
  bool infeasible() const { return infeasible_; }
  // A lower bound on the time beyond the base duration.
  Ticks bound() const { return bound_; }
  // The last set of cut points that raised the bound, with its multipliers. nullopt until a set is
  // finished.
  const std::vector<CutPoint>& best() const { return best_; }
  const WindowBound::Start& start() const { return start_; }

 private:
  void grow(Ticks proven, Limits& limits);
  void replace_moments(const CutPoint& added);
  const CutPoint* most_overloaded(Limits& limits) const;

  const Problem& problem_;
  CutScale scale_;
  std::vector<CutPoint> moments_, candidates_, best_;
  std::size_t most_;
  std::optional<WindowBound> windows_;
  WindowBound::Start start_;
  Ticks bound_;
  bool gains_ = false;         // whether the present set raised the bound
  int idle_ = 0, behind_ = 0;  // sets without gain; sets below the bound of other relaxations
  bool finished_ = false, infeasible_ = false;
};

}  // namespace lowtide::solve::bounds
