// Applies a question's transforms: solvers plan the transformed graph, and know no transforms.
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
  explicit TransformReduction(const Question& original);

  // The question's problem on the transformed graph.
  const Problem& problem() const override { return problem_; }
  // The question's live limits on the transformed graph.
  const std::vector<LiveLimit>& live_limits() const { return live_limits_; }
  // Keeps the plans that have the question's transforms.
  std::vector<Plan> starts(std::vector<Plan> plans) const override;
  solve::Watcher translate(solve::Watcher watcher) override;
  void bring_back(Answer& answer) const override;

 private:
  const Question& original_;
  std::shared_ptr<const Applied> applied_;
  Problem problem_;
  std::vector<LiveLimit> live_limits_;
};

}  // namespace lowtide::driver
