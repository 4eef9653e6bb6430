// Retention from a sequence. One pass gives every computation of a tensor its last use, a second
// emits the steps.
#include "lowtide/plan/plan.h"

#include <algorithm>

#include "lowtide/base/error.h"

namespace lowtide {

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::compute: return "compute";
    case StepKind::compute_in_place: return "compute_in_place";
    case StepKind::free: return "free";
    case StepKind::offload: return "offload";
    case StepKind::prefetch: return "prefetch";
  }
  return "compute";
}

void Plan::add_compute(OpId op, std::span<const TensorId> overwritten) {
  Step step = Step::compute(op);
  if (!overwritten.empty()) {
    step.kind = StepKind::compute_in_place;
    step.first = static_cast<std::uint32_t>(in_place_of.size());
    step.count = static_cast<std::uint32_t>(overwritten.size());
    in_place_of.insert(in_place_of.end(), overwritten.begin(), overwritten.end());
  }
  steps.push_back(step);
}

Plan plan_from_sequence(const Graph& graph, std::span<const OpId> sequence, InPlace in_place) {
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
  std::vector<TensorId> overwritten;
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    const OpId op = sequence[at];
    const auto ends = [&](TensorId id) {
      const std::size_t instance = current[id.index()];
      return keep[instance] == 0 && last_use[instance] == at;
    };
    overwritten.clear();
    TensorId served;
    if (in_place == InPlace::where_possible)
      for (const InPlacePair& pair : graph.overwrites(op)) {
        if (pair.output == served || !ends(pair.input)) continue;
        overwritten.push_back(pair.input);
        served = pair.output;
      }
    plan.add_compute(op, overwritten);
    for (TensorId output : graph.outputs(op)) current[output.index()] = made++;
    for (TensorId input : graph.inputs(op))
      if (ends(input) && std::ranges::find(overwritten, input) == overwritten.end())
        plan.steps.push_back(Step::free(input));
    for (TensorId output : graph.outputs(op))
      if (ends(output)) plan.steps.push_back(Step::free(output));
  }
  return plan;
}

bool transfers(const Plan& plan) { return std::ranges::any_of(plan.steps, &Step::is_transfer); }

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
