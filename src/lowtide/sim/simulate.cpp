// Replays a plan and records memory and times.
#include "lowtide/sim/simulate.h"

#include <algorithm>

#include "lowtide/base/error.h"
#include "lowtide/plan/transformed_problem.h"
#include "lowtide/sim/replay.h"

namespace lowtide {

std::size_t Timeline::peak_step() const {
  const auto most = std::max_element(live.begin(), live.end());
  if (most == live.end() || *most < start) return live.size();
  return static_cast<std::size_t>(most - live.begin());
}

namespace {

Timeline run(Replay replay, const Plan& plan) {
  Timeline timeline;
  timeline.start = timeline.cost.peak = replay.live();
  timeline.live.reserve(plan.steps.size());
  timeline.begin.reserve(plan.steps.size());
  timeline.end.reserve(plan.steps.size());
  timeline.clock.reserve(plan.steps.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (auto why = replay.apply(plan.steps[i])) {
      timeline.violation = Violation{i, std::move(*why)};
      break;
    }
    timeline.live.push_back(replay.during());
    timeline.begin.push_back(replay.began());
    timeline.end.push_back(replay.ended());
    timeline.clock.push_back(replay.clock());
    timeline.cost.peak = std::max(timeline.cost.peak, replay.during());
  }
  timeline.cost.duration = replay.duration();
  timeline.cost.host_peak = replay.host();
  if (!timeline.violation)
    if (auto why = replay.missing_at_end())
      timeline.violation = Violation{plan.steps.size(), std::move(*why)};
  return timeline;
}

// A plan whose transforms are not legal runs no step.
Timeline refused(const Graph& graph, const std::string& why) {
  Timeline timeline = run(Replay(graph, Plan{}), Plan{});
  timeline.violation = Violation{0, why};
  return timeline;
}

}  // namespace

Timeline simulate(const Graph& graph, const Plan& plan) {
  if (plan.transforms.empty()) return run(Replay(graph, plan), plan);
  try {
    const PlanOnGraph on(graph, plan);
    return run(Replay(on.graph(), on.plan()), on.plan());
  } catch (const InputError& error) {
    return refused(graph, error.what());
  }
}

std::optional<Ticks> duration_over(const Graph& graph, const Plan& plan, const Machine& links) {
  Plan over = plan;
  over.machine = links;
  const Timeline timeline = simulate(graph, over);
  if (timeline.violation) return std::nullopt;
  return timeline.cost.duration;
}

std::vector<TensorId> live_tensors(const Graph& graph, const Plan& plan, std::size_t step) {
  check(plan.transforms.empty(), "live tensors are those of the graph that transforms have made");
  Replay replay(graph, plan);
  for (std::size_t i = 0; i < std::min(step, plan.steps.size()); ++i)
    if (replay.apply(plan.steps[i])) break;
  const bool within = step < plan.steps.size();
  // A compute or a prefetch adds to what is live while it runs; a free takes only afterwards.
  if (within && plan.steps[step].kind != StepKind::free) replay.apply(plan.steps[step]);
  std::vector<TensorId> live;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (replay.is_live(TensorId(i))) live.push_back(TensorId(i));
  return live;
}

Plan own_plan(const Graph& graph) {
  return plan_from_sequence(graph, graph.order(), InPlace::never);
}

Bytes own_peak(const Graph& graph) {
  if (!graph.has_tensors_on_host()) return simulate(graph, own_plan(graph)).cost.peak;
  return own_peak(Graph(graph).with_homes_on_device());
}

Ticks own_duration(const Graph& graph) {
  if (!graph.has_network_ops()) return graph.total_time();
  if (graph.has_tensors_on_host()) return own_duration(Graph(graph).with_homes_on_device());
  return simulate(graph, own_plan(graph)).cost.duration;
}

bool on_compute_lane(const Graph& graph, const Step& step) {
  if (step.is_transfer()) return false;
  return !step.is_compute() || !graph.on_network(step.op());
}

}  // namespace lowtide
