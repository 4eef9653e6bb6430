// Limits of what is live during single ops, brought down to the budget, so that every solver, floor
// and bound keeps them without knowing of them.
//
// An op that may see at most so many live bytes gets more workspace: what the budget leaves beyond
// them. On that graph a plan keeps the budget exactly if on the one asked about it keeps both the
// budget and the limits; its steps, its duration and every bound on durations are the same. Peaks
// are not: what is said of them is brought back here.
#pragma once

#include <optional>
#include <vector>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::driver {

class WithoutLimits {
 public:
  // InputError as check_live_limits has it, or if the bytes of the graph so made add up to 2^63 or
  // more. The problem must outlive it.
  explicit WithoutLimits(const Problem& asked);
  WithoutLimits(const WithoutLimits&) = delete;
  WithoutLimits& operator=(const WithoutLimits&) = delete;

  // The same question without limits.
  const Problem& problem() const { return problem_; }

  // Tells `watcher` what plans cost on the graph asked about, and remembers it for `bring_back`.
  solve::Watcher told_to(solve::Watcher watcher);
  // What was answered to `problem()`, as an answer to the problem asked. `smallest`: the plan with
  // the smallest peak that was seen, if there is one.
  void bring_back(Outcome& outcome, const std::optional<Plan>& smallest) const;

 private:
  Bytes floor(Bytes peak) const;  // of one that is proven on the graph with more workspace

  const Problem& asked_;
  Bytes floor_;   // of the graph asked about
  Bytes raised_;  // the most by which a workspace has grown
  Graph graph_;
  Problem problem_;
  std::vector<Cost> seen_, told_;  // of each plan that became the best: on either graph
};

}  // namespace lowtide::driver
