// An answer as a plan file states it: what is claimed is of least time, whatever was asked for.
#include "lowtide/plan/plan_file.h"

#include <utility>

#include "lowtide/base/version.h"
#include "lowtide/graph/hash.h"
#include "lowtide/transforms/apply.h"

namespace lowtide {

std::string_view to_string(BoundScope scope) {
  return scope == BoundScope::graph ? "graph" : "techniques";
}

PlanFile plan_file(const Question& question, const Outcome& outcome, FoundBy asked) {
  const Problem& problem = question.problem;
  PlanFile file;
  file.graph_hash = graph_hash(problem.graph);
  file.graph_name = problem.graph.name();
  file.budget = problem.budget;
  file.order = problem.order;
  file.techniques = problem.techniques;
  if (!problem.machine) file.techniques->offload = false;
  file.host_budget = problem.host_budget;
  file.claims.status = outcome.status;
  file.plan.transforms = question.transforms;
  if (outcome.plan) {
    file.plan = *outcome.plan;
    if (!transfers(file.plan)) file.plan.machine.reset();
    file.claims.duration = outcome.cost.duration;
    file.claims.peak = outcome.cost.peak;
  }
  if (problem.objective == Objective::least_memory) {
    if (outcome.status == Status::optimal && outcome.bound.duration != outcome.cost.duration)
      file.claims.status = Status::feasible;
    if (outcome.status == Status::infeasible && outcome.bound.peak <= problem.budget)
      file.claims.status = Status::unknown;
  }
  // Of no plan at all, a bound of nothing says nothing.
  if (outcome.status != Status::infeasible && (outcome.plan || outcome.bound.duration > Ticks(0)))
    file.claims.bound = outcome.bound.duration;
  if (!question.live_limits.empty()) {
    const Ticks once =
        file.plan.transforms.empty()
            ? problem.graph.least_time()
            : apply_transforms(problem.graph, file.plan.transforms).graph.least_time();
    if (outcome.status == Status::optimal && outcome.cost.duration != once)
      file.claims.status = Status::feasible;
    if (outcome.status == Status::infeasible && outcome.bound.peak <= problem.budget)
      file.claims.status = Status::unknown;
    if (file.claims.bound) file.claims.bound = once;
  }
  if (!file.plan.transforms.empty()) {
    file.transform_hash = transform_hash(problem.graph);
    if (file.claims.bound) file.claims.bound_scope = BoundScope::graph;
  }
  if (!outcome.found_by.empty()) asked.solver = outcome.found_by;
  asked.stopped_by = to_string(outcome.stopped_by);
  asked.version = std::string(kVersion);
  asked.note = outcome.note;
  asked.model = outcome.model;
  asked.history = outcome.history;
  asked.parts = outcome.parts;
  file.found_by = std::move(asked);
  return file;
}

}  // namespace lowtide
