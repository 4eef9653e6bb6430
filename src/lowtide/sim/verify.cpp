// Plain and slow on purpose: one replay, then the problem's own demands.
#include "lowtide/sim/verify.h"

#include <algorithm>
#include <span>

#include "lowtide/base/error.h"
#include "lowtide/plan/transformed_problem.h"

namespace lowtide {

namespace {

std::optional<Violation> order_violation(const Graph& graph, const Plan& plan) {
  std::vector<std::uint8_t> computed(graph.op_count(), 0);
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (!plan.steps[i].is_compute()) continue;
    const OpId op = plan.steps[i].op();
    if (computed[op.index()] != 0) continue;
    if (graph.order()[next] != op)
      return Violation{i, "compute of " + graph.label(op) + ": in the given order " +
                              graph.label(graph.order()[next]) + " comes first"};
    computed[op.index()] = 1;
    ++next;
  }
  return std::nullopt;
}

std::optional<Violation> live_violation(const Graph& graph, std::span<const LiveLimit> limits,
                                        const Plan& plan, const Timeline& timeline) {
  for (const LiveLimit& limit : limits)
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
      if (plan.steps[i].is_compute() && plan.steps[i].op() == limit.op &&
          timeline.live[i] > limit.most)
        return Violation{i, "compute of " + graph.label(limit.op) + ": " +
                                std::to_string(timeline.live[i].count()) +
                                " bytes are live, its limit is " +
                                std::to_string(limit.most.count())};
  return std::nullopt;
}

// The first step that uses what the problem does not allow.
std::optional<Violation> technique_violation(const Problem& problem, const Plan& plan) {
  const Graph& graph = problem.graph;
  std::vector<std::uint8_t> computed(graph.op_count(), 0);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const auto refuse = [&](const std::string& why) {
      return Violation{
          i, std::string(to_string(step.kind)) + " of " +
                 (step.is_compute() ? graph.label(step.op()) : graph.label(step.tensor())) + ": " +
                 why};
    };
    if (step.is_transfer() && !problem.machine)
      return refuse("the problem has no machine, so nothing can be copied to the host");
    if (step.is_transfer() && !problem.techniques.offload)
      return refuse("the technique \"offload\" is not among those allowed");
    if (!step.is_compute()) continue;
    if (step.kind == StepKind::compute_in_place && !problem.techniques.in_place)
      return refuse("the technique \"in_place\" is not among those allowed");
    if (computed[step.op().index()] != 0 && !problem.techniques.recompute)
      return refuse(
          "it was computed before, and the technique \"recompute\" is not among those allowed");
    computed[step.op().index()] = 1;
  }
  return std::nullopt;
}

// Of a plan without transforms.
Verdict verify_steps(const Problem& problem, std::span<const LiveLimit> limits, const Plan& plan) {
  const Graph& graph = problem.graph;
  const Timeline timeline = simulate(graph, plan);
  Verdict verdict;
  verdict.cost = timeline.cost;
  verdict.violation = timeline.violation;
  const auto demand = [&](bool holds, const std::string& reason) {
    if (!verdict.violation && !holds) verdict.violation = Violation{plan.steps.size(), reason};
  };
  if (!verdict.violation && problem.order == Order::given)
    verdict.violation = order_violation(graph, plan);
  if (!verdict.violation && timeline.cost.peak > problem.budget)
    verdict.violation = Violation{
        timeline.peak_step(), "the peak is " + std::to_string(timeline.cost.peak.count()) +
                                  " bytes, the budget " + std::to_string(problem.budget.count())};
  if (!verdict.violation) verdict.violation = live_violation(graph, limits, plan, timeline);
  demand(!problem.time_limit || timeline.cost.duration <= *problem.time_limit,
         "the duration is beyond the time limit");
  if (!verdict.violation) verdict.violation = technique_violation(problem, plan);
  demand(!problem.host_budget || timeline.cost.host_peak <= *problem.host_budget,
         "the host's peak is " + std::to_string(timeline.cost.host_peak.count()) +
             " bytes, beyond its budget");
  demand(!problem.machine || !plan.machine || *problem.machine == *plan.machine,
         "the plan is made for another machine: its links to the host are not the problem's");
  verdict.ok = !verdict.violation;
  return verdict;
}

Verdict refused(const std::string& why) { return {false, {}, Violation{0, why}}; }

}  // namespace

Verdict verify(const Question& question, const Plan& plan) {
  const Problem& problem = question.problem;
  const std::size_t asked = question.transforms.size();
  if (plan.transforms.size() < asked ||
      !std::equal(question.transforms.begin(), question.transforms.end(), plan.transforms.begin()))
    return refused("the plan does not begin with the transforms that the problem asks for");
  if (plan.transforms.empty()) return verify_steps(problem, question.live_limits, plan);
  for (const Transform& transform : plan.transforms)
    if (!has_technique(problem.techniques, kind_of(transform)))
      return refused("the technique \"" + std::string(kind_of(transform)) +
                     "\" is not among those allowed");
  try {
    const auto applied = apply_cached(question, plan.transforms);
    const TransformedGraph& now = applied->now;
    return verify_steps(with_graph(problem, now.graph), on_transformed(now, question.live_limits),
                        on_transformed(now, plan));
  } catch (const InputError& error) {
    return refused(error.what());
  }
}

Verdict verify(const Problem& problem, const Plan& plan) { return verify(Question{problem}, plan); }

}  // namespace lowtide
