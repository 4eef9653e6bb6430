// What a problem's techniques leave of its graph. Solvers, floors and bounds never ask which
// techniques are allowed: the graph that they see has nothing to use but those.
#pragma once

#include <optional>

#include "lowtide/driver/reduction.h"
#include "lowtide/graph/graph.h"

namespace lowtide::driver {

// Without `recompute` no op may be computed again, without `in_place` none has pairs, without
// `offload` there is no machine. Plans for the reduced problem are plans for the original one, of
// the same cost.
class AllowedGraph final : public Reduction {
 public:
  explicit AllowedGraph(const Problem& original);

  // On the original graph if nothing of it has to go.
  const Problem& problem() const override { return problem_; }

 private:
  std::optional<Graph> changed_;
  Problem problem_;
};

}  // namespace lowtide::driver
