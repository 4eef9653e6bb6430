// Applies a problem's transforms: solvers plan the transformed graph and know of no transforms.
#pragma once

#include <optional>
#include <vector>

#include "lowtide/plan/transformed_problem.h"
#include "lowtide/solve/interface/context.h"

namespace lowtide::driver {

class TransformReduction {
 public:
  // Throws as apply_transforms does; InputError for a transform whose technique is not allowed, and
  // for a limit of an op that the transforms have removed. The problem must outlive the reduction.
  explicit TransformReduction(const Problem& asked);
  TransformReduction(const TransformReduction&) = delete;
  TransformReduction& operator=(const TransformReduction&) = delete;

  // The same problem on the transformed graph.
  const Problem& problem() const { return problem_; }
  // Those of these plans that have the same transforms, as plans for `problem()`.
  std::vector<Plan> starts_for(const std::vector<Plan>& starts) const;
  // A watcher for progress on `problem()` that tells `watcher` of plans for the original problem.
  // It must not outlive the reduction.
  solve::Watcher told_to(solve::Watcher watcher) const;
  // Turns a plan for `problem()` into one for the original problem.
  void bring_back(std::optional<Plan>& plan) const;

 private:
  const Problem& asked_;
  std::shared_ptr<const Applied> applied_;
  Problem problem_;
};

}  // namespace lowtide::driver
