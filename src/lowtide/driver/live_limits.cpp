// The budget is lowered to what any plan can use, where it is beyond that: then the workspaces stay
// within sums that the graph has already.
#include "lowtide/driver/live_limits.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/peak_floor.h"

namespace lowtide::driver {

namespace {

// As much as that is never live.
Bytes everything(const Graph& graph) {
  Bytes sum = graph.resident();
  for (const TensorId id : AllIds<TensorId>(graph.tensor_count())) sum += graph.bytes(id);
  for (const OpId op : AllIds<OpId>(graph.op_count())) sum += graph.workspace(op);
  return sum;
}

Graph roomier(const Problem& asked, Bytes budget, Bytes& raised) {
  check_live_limits(asked);
  const Graph& graph = asked.graph;
  std::vector<Bytes> workspaces;
  workspaces.reserve(graph.op_count());
  for (const OpId op : AllIds<OpId>(graph.op_count())) workspaces.push_back(graph.workspace(op));
  for (const LiveLimit& limit : asked.live_limits) {
    if (limit.most >= budget) continue;
    const Bytes more = budget - limit.most;
    raised = std::max(raised, more);
    Bytes& workspace = workspaces[limit.op.index()];
    workspace = std::max(workspace, checked_add(graph.workspace(limit.op), more));
  }
  return Graph(graph).with_workspaces(workspaces);
}

Problem without_limits(const Problem& asked, const Graph& graph, Bytes budget) {
  Problem problem = with_graph(asked, graph);
  problem.budget = budget;
  problem.live_limits.clear();
  return problem;
}

}  // namespace

WithoutLimits::WithoutLimits(const Problem& asked)
    : asked_(asked),
      floor_(solve::peak_floor(asked)),
      graph_(roomier(asked, std::min(asked.budget, everything(asked.graph)), raised_)),
      problem_(without_limits(asked, graph_, std::min(asked.budget, everything(asked.graph)))) {}

Bytes WithoutLimits::floor(Bytes peak) const {
  // No plan's peak is higher there than here by more than what a workspace has grown.
  return std::max(floor_, peak - raised_);
}

solve::Watcher WithoutLimits::told_to(solve::Watcher watcher) {
  return [this, watcher = std::move(watcher)](solve::Progress now) {
    if (now.plan != nullptr && (seen_.empty() || seen_.back() != now.cost)) {
      seen_.push_back(now.cost);
      told_.push_back(simulate(asked_.graph, *now.plan).cost);
    }
    if (!watcher) return;
    now.bound.peak = floor(now.bound.peak);
    now.smallest_peak.reset();
    if (now.plan != nullptr) {
      now.cost = told_.back();
      now.smallest_peak = now.cost.peak;
    }
    watcher(now);
  };
}

void WithoutLimits::bring_back(Outcome& outcome, const std::optional<Plan>& smallest) const {
  check(outcome.history.size() == told_.size(), "every plan that became the best has been told of");
  for (std::size_t i = 0; i < told_.size(); ++i) outcome.history[i].cost = told_[i];
  if (smallest) outcome.cost = simulate(asked_.graph, *smallest).cost;
  if (outcome.smallest_peak) outcome.smallest_peak = outcome.cost.peak;
  if (outcome.plan) {
    outcome.cost = simulate(asked_.graph, *outcome.plan).cost;
    outcome.smallest_peak = std::min(*outcome.smallest_peak, outcome.cost.peak);
  }
  outcome.bound.peak = floor(outcome.bound.peak);
  if (outcome.status == Status::infeasible && outcome.bound.peak <= asked_.budget)
    outcome.note += std::string(outcome.note.empty() ? "" : "; ") +
                    "no plan within the budget keeps the limits of what is live during single ops";
}

}  // namespace lowtide::driver
