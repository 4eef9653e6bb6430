// Plans on the graph that their transforms make, and the same plans as files have them.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "lowtide/plan/plan.h"
#include "lowtide/plan/problem.h"
#include "lowtide/transforms/apply.h"

namespace lowtide {

// The steps of a plan with transforms on the graph that they have made: without transforms, in that
// graph's own indices. An index that the graph has no place for becomes one beyond all of its own,
// so that whoever runs the steps says that there is no such op or tensor.
Plan on_made(const Transformed& made, const Plan& plan);

// The other way: a plan of the made graph as one of the original, with the transforms.
Plan on_original(const Transformed& made, std::span<const Transform> transforms, const Plan& plan);

// What is asked about the graph as a question about the one that its transforms have made. Must not
// outlive `made`. InputError for a limit of an op that is gone.
Problem on_made(const Transformed& made, const Problem& problem);

// What these make of the problem's graph: out of its `made_once`, where it has one of this graph.
std::shared_ptr<const Applied> applied_to(const Problem& problem,
                                          std::span<const Transform> transforms);
std::shared_ptr<const Applied> keep_applied(const Problem& problem, Applied made);

// The graph on which a plan is to be seen, and the plan on it: both as they are where there are no
// transforms. The graph and the plan must outlive it. Throws as apply_transforms does.
class PlanOnGraph {
 public:
  PlanOnGraph(const Graph& graph, const Plan& plan);
  PlanOnGraph(const PlanOnGraph&) = delete;
  PlanOnGraph& operator=(const PlanOnGraph&) = delete;

  const Graph& graph() const { return made_ ? made_->graph : graph_; }
  const Plan& plan() const { return made_ ? on_made_ : plan_; }
  const Transformed* made() const { return made_ ? &*made_ : nullptr; }

 private:
  const Graph& graph_;
  const Plan& plan_;
  std::optional<Transformed> made_;
  Plan on_made_;
};

}  // namespace lowtide
