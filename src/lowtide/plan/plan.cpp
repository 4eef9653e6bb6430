// Steps, and what of them is computed. plan_from_sequence is in events.cpp.
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
