// A budget above the need of every plan is lowered to that need, so that workspaces stay within the
// sum of the graph's bytes.
#include "lowtide/driver/live_limits.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/peak_floor.h"

namespace lowtide::driver {

namespace {

// An upper bound on the live bytes of every plan.
Bytes everything(const Graph& graph) {
  Bytes sum = graph.resident();
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) sum += graph.bytes(id);
  for (const OpId op : AllIds<OpId>(graph.op_count())) sum += graph.workspace(op);
  return sum;
}

// The graph with more workspace. `raised`: the largest increase of a workspace.
Graph with_larger_workspaces(const Problem& original, std::span<const LiveLimit> limits,
                             Bytes budget, Bytes& raised) {
  check_live_limits(original, limits);
  const Graph& graph = original.graph;
  std::vector<Bytes> workspaces;
  workspaces.reserve(graph.op_count());
  for (const OpId op : AllIds<OpId>(graph.op_count())) workspaces.push_back(graph.workspace(op));
  for (const LiveLimit& limit : limits) {
    if (limit.most >= budget) continue;
    const Bytes more = budget - limit.most;
    raised = std::max(raised, more);
    Bytes& workspace = workspaces[limit.op.index()];
    workspace = std::max(workspace, checked_add(graph.workspace(limit.op), more));
  }
  return Graph(graph).with_workspaces(workspaces);
}

Problem with_workspaces(const Problem& original, const Graph& graph, Bytes budget) {
  Problem problem = with_graph(original, graph);
  problem.budget = budget;
  return problem;
}

Bytes usable_budget(const Problem& original) {
  return std::min(original.budget, everything(original.graph));
}

}  // namespace

LiveLimitReduction::LiveLimitReduction(const Problem& original, std::span<const LiveLimit> limits)
    : original_(original),
      floor_(solve::peak_floor(original)),
      graph_(with_larger_workspaces(original, limits, usable_budget(original), raised_)),
      problem_(with_workspaces(original, graph_, usable_budget(original))) {}

Bytes LiveLimitReduction::original_floor(Bytes reduced_floor) const {
  // The peak of a plan is higher on the reduced graph by at most the largest increase of a
  // workspace.
  return std::max(floor_, reduced_floor - raised_);
}

solve::Watcher LiveLimitReduction::translate(solve::Watcher watcher) {
  return [this, watcher = std::move(watcher)](solve::Progress progress) {
    if (progress.plan != nullptr && last_reduced_cost_ != progress.cost) {
      last_reduced_cost_ = progress.cost;
      costs_.push_back(simulate(original_.graph, *progress.plan).cost);
    }
    if (!watcher) return;
    progress.bound.peak = original_floor(progress.bound.peak);
    progress.smallest_peak.reset();
    if (progress.plan != nullptr) {
      progress.cost = costs_.back();
      progress.smallest_peak = progress.cost.peak;
    }
    watcher(progress);
  };
}

void LiveLimitReduction::bring_back(Answer& answer) const {
  Outcome& outcome = answer.outcome;
  check(outcome.history.size() == costs_.size(), "the watcher has seen every plan of the history");
  for (std::size_t i = 0; i < costs_.size(); ++i) outcome.history[i].cost = costs_[i];
  if (answer.smallest) outcome.cost = simulate(original_.graph, *answer.smallest).cost;
  if (outcome.smallest_peak) outcome.smallest_peak = outcome.cost.peak;
  if (outcome.plan) {
    outcome.cost = simulate(original_.graph, *outcome.plan).cost;
    outcome.smallest_peak = std::min(*outcome.smallest_peak, outcome.cost.peak);
    // A reduction below this one may have improved the last plan.
    if (!outcome.history.empty()) outcome.history.back().cost = outcome.cost;
  }
  outcome.bound.peak = original_floor(outcome.bound.peak);
  if (outcome.status == Status::infeasible && outcome.bound.peak <= original_.budget)
    outcome.note += std::string(outcome.note.empty() ? "" : "; ") +
                    "no plan within the budget keeps the limits of what is live during single ops";
}

}  // namespace lowtide::driver
