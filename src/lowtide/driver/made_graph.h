// A problem's transforms, done: solvers plan the graph that they make and know of none.
#pragma once

#include <optional>
#include <vector>

#include "lowtide/plan/transformed.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::driver {

class MadeGraph {
 public:
  // Throws as apply_transforms does; InputError for a transform whose technique is not allowed, and
  // for a limit of an op that the transforms leave no more. The problem must outlive it.
  explicit MadeGraph(const Problem& asked);
  MadeGraph(const MadeGraph&) = delete;
  MadeGraph& operator=(const MadeGraph&) = delete;

  // The same question about the graph that is made.
  const Problem& problem() const { return problem_; }
  // Of these plans those that have the same transforms, as plans for `problem()`.
  std::vector<Plan> starts_for(const std::vector<Plan>& starts) const;
  // Tells `watcher` of plans of the graph asked about. Must not outlive this object.
  solve::Watcher told_to(solve::Watcher watcher) const;
  // A plan that was found for `problem()`, as one of the problem asked.
  void bring_back(std::optional<Plan>& plan) const;

 private:
  const Problem& asked_;
  std::shared_ptr<const Applied> made_;
  Problem problem_;
};

}  // namespace lowtide::driver
