// Retention from a sequence. One pass gives every computation of a tensor its last use, a second
// emits the steps.
#include "lowtide/plan/plan.h"

#include <algorithm>

#include "lowtide/base/error.h"

namespace lowtide {

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::compute: return "compute";
    case StepKind::free: return "free";
    case StepKind::offload: return "offload";
    case StepKind::prefetch: return "prefetch";
  }
  return "compute";
}

Plan plan_from_sequence(const Graph& graph, std::span<const OpId> sequence) {
  constexpr std::size_t kNever = SIZE_MAX;
  // Instances are numbered in the order of their making: inputs first, then outputs of each step.
  std::vector<std::size_t> current(graph.tensor_count(), kNever);
  std::vector<std::size_t> last_use;
  std::size_t made = 0;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    if (graph.is_input(TensorId(i))) current[i] = made++;
  const std::size_t inputs = made;
  last_use.assign(inputs, kNever);
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    for (TensorId input : graph.inputs(sequence[at])) last_use[current[input.index()]] = at;
    for (TensorId output : graph.outputs(sequence[at])) {
      current[output.index()] = made++;
      last_use.push_back(at);
    }
  }
  std::vector<std::uint8_t> keep(made, 0);
  for (TensorId output : graph.outputs())
    if (current[output.index()] != kNever) keep[current[output.index()]] = 1;

  Plan plan;
  plan.steps.reserve(2 * sequence.size());
  made = 0;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph.is_input(id)) continue;
    current[i] = made++;
    if (!graph.freeable(id)) keep[current[i]] = 1;
    if (keep[current[i]] == 0 && last_use[current[i]] == kNever)
      plan.steps.push_back(Step::free(id));
  }
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    const OpId op = sequence[at];
    plan.steps.push_back(Step::compute(op));
    const auto free_if_last = [&](TensorId id) {
      const std::size_t instance = current[id.index()];
      if (keep[instance] == 0 && last_use[instance] == at) plan.steps.push_back(Step::free(id));
    };
    for (TensorId output : graph.outputs(op)) current[output.index()] = made++;
    for (TensorId input : graph.inputs(op)) free_if_last(input);
    for (TensorId output : graph.outputs(op)) free_if_last(output);
  }
  return plan;
}

bool transfers(const Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const Step& step) {
    return step.kind == StepKind::offload || step.kind == StepKind::prefetch;
  });
}

std::vector<OpId> computations(const Plan& plan) {
  std::vector<OpId> sequence;
  for (const Step& step : plan.steps)
    if (step.is_compute()) sequence.push_back(step.op());
  return sequence;
}

std::vector<OpId> sequence_of(const Plan& plan) {
  check(!transfers(plan), "a plan that transfers is more than its computations");
  return computations(plan);
}

}  // namespace lowtide
