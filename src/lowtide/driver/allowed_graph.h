// Reduces a problem to the part of its graph that its techniques allow. So solvers, floors and
// bounds never ask which techniques are allowed: the reduced graph has only those.
#pragma once

#include <optional>

#include "lowtide/driver/reduction.h"
#include "lowtide/graph/graph.h"

namespace lowtide::driver {

// Without `recompute` no op is recomputable, without `in_place` there are no pairs, and without
// `offload` there is no machine. Plans for the reduced problem are plans for the original one, at
// the same cost.
class AllowedGraph final : public Reduction {
 public:
  explicit AllowedGraph(const Problem& original);

  // Uses the original graph if nothing must be removed.
  const Problem& problem() const override { return problem_; }

 private:
  std::optional<Graph> changed_;
  Problem problem_;
};

}  // namespace lowtide::driver
