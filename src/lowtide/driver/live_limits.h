// Reduces limits on the bytes live during single ops to the budget. So every solver, floor and
// bound keeps them without knowing them.
//
// An op with a limit gets more workspace: the difference between the budget and the limit. On the
// reduced graph a plan keeps the budget if and only if on the original graph it keeps both the
// budget and the limits; its steps, its duration and every bound on durations are the same. Peaks
// differ, so all peaks of an answer are recomputed for the original graph.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lowtide/driver/reduction.h"
#include "lowtide/plan/question.h"

namespace lowtide::driver {

class LiveLimitReduction final : public Reduction {
 public:
  // Throws InputError as check_live_limits does, or if the bytes of the reduced graph add up to
  // 2^63 or more.
  LiveLimitReduction(const Problem& original, std::span<const LiveLimit> limits);

  // The same problem on the graph with more workspace.
  const Problem& problem() const override { return problem_; }
  // The watcher also records the costs of plans on the original graph for `bring_back`, so there is
  // one even if `watcher` is empty.
  solve::Watcher translate(solve::Watcher watcher) override;
  void bring_back(Answer& answer) const override;

 private:
  // A lower bound on the peak for the original graph, from one for the reduced graph.
  Bytes original_floor(Bytes reduced_floor) const;

  const Problem& original_;
  Bytes floor_;   // of the original graph
  Bytes raised_;  // the largest increase of a workspace
  Graph graph_;
  Problem problem_;
  // For each plan that became the best, in turn: its cost on the original graph, and for the last
  // one also that on the reduced graph.
  std::vector<Cost> costs_;
  std::optional<Cost> last_reduced_cost_;
};

}  // namespace lowtide::driver
