// Converts problems and plans between the original graph, which files refer to, and the transformed
// graph.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "lowtide/plan/plan.h"
#include "lowtide/plan/problem.h"
#include "lowtide/transforms/apply.h"

namespace lowtide {

// The plan on the transformed graph: without transforms, and with that graph's own indices. The
// index of an op or tensor that the graph does not have becomes an index beyond its last one, so
// that simulating the steps reports that there is no such op or tensor.
Plan on_transformed(const TransformedGraph& transformed, const Plan& plan);

// The inverse: a plan of the transformed graph as a plan of the original, with the transforms.
Plan on_original(const TransformedGraph& transformed, std::span<const Transform> transforms,
                 const Plan& plan);

// The same problem, without transforms, on the transformed graph. It must not outlive
// `transformed`. Throws InputError for a live limit of an op that the transforms remove.
Problem on_transformed(const TransformedGraph& transformed, const Problem& problem);

// Applies transforms to the problem's graph, by its `transform_cache` if the cache is for this
// graph.
std::shared_ptr<const Applied> apply_cached(const Problem& problem,
                                            std::span<const Transform> transforms);
// Adds a list that the caller has applied to the problem's `transform_cache`, if the cache is for
// this graph.
std::shared_ptr<const Applied> cache_applied(const Problem& problem, Applied applied);

// The graph that the steps of a plan run on, and the plan on it: the transformed graph, or the
// original one if the plan has no transforms. The graph and the plan must outlive it. Throws as
// apply_transforms does.
class PlanOnGraph {
 public:
  PlanOnGraph(const Graph& graph, const Plan& plan);
  PlanOnGraph(const PlanOnGraph&) = delete;
  PlanOnGraph& operator=(const PlanOnGraph&) = delete;

  const Graph& graph() const { return transformed_ ? transformed_->graph : graph_; }
  const Plan& plan() const { return transformed_ ? on_transformed_ : plan_; }
  const TransformedGraph* transformed() const { return transformed_ ? &*transformed_ : nullptr; }

 private:
  const Graph& graph_;
  const Plan& plan_;
  std::optional<TransformedGraph> transformed_;
  Plan on_transformed_;
};

}  // namespace lowtide
