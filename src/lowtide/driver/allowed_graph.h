// What a problem's techniques leave of its graph. Solvers, floors and bounds never ask which
// techniques are allowed: the graph that they see has nothing to use but those.
#pragma once

#include <optional>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/problem.h"

namespace lowtide::driver {

// Without `recompute` no op may be computed again, without `in_place` none has pairs. Plans for
// this graph are plans for the problem's own.
class AllowedGraph {
 public:
  AllowedGraph(const Graph& graph, const Techniques& techniques);

  const Graph& graph() const { return changed_ ? *changed_ : original_; }
  // The problem on this graph; without `offload` it has no machine. Must not outlive this object.
  Problem problem(const Problem& problem) const;

 private:
  const Graph& original_;
  std::optional<Graph> changed_;
};

}  // namespace lowtide::driver
