// Applies a problem's transforms: solvers plan the transformed graph, and know no transforms.
#pragma once

#include <memory>
#include <vector>

#include "lowtide/driver/reduction.h"
#include "lowtide/plan/transformed_problem.h"

namespace lowtide::driver {

class TransformReduction final : public Reduction {
 public:
  // Throws as apply_transforms does. Throws InputError for a transform whose technique is not
  // allowed, and for a live limit of an op that the transforms remove.
  explicit TransformReduction(const Problem& original);

  // The same problem on the transformed graph.
  const Problem& problem() const override { return problem_; }
  // Keeps the plans that have the problem's transforms.
  std::vector<Plan> starts(std::vector<Plan> plans) const override;
  solve::Watcher translate(solve::Watcher watcher) override;
  void bring_back(Answer& answer) const override;

 private:
  const Problem& original_;
  std::shared_ptr<const Applied> applied_;
  Problem problem_;
};

}  // namespace lowtide::driver
