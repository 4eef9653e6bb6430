#include "lowtide/driver/reduction_stack.h"

#include <ranges>

#include "lowtide/driver/allowed_graph.h"
#include "lowtide/driver/live_limits.h"
#include "lowtide/driver/network_reduction.h"
#include "lowtide/driver/transform_reduction.h"

namespace lowtide::driver {

std::vector<Plan> ReductionStack::starts(std::vector<Plan> plans) const {
  for (const auto& reduction : stack_) plans = reduction->starts(std::move(plans));
  return plans;
}

solve::Watcher ReductionStack::translate(solve::Watcher watcher) const {
  for (const auto& reduction : stack_) watcher = reduction->translate(std::move(watcher));
  return watcher;
}

void ReductionStack::bring_back(Answer& answer) const {
  for (const auto& reduction : stack_ | std::views::reverse) reduction->bring_back(answer);
}

ReductionStack reductions_for(const Question& question, const LimitSettings& limits) {
  ReductionStack stack(question.problem);
  std::vector<LiveLimit> live_limits = question.live_limits;
  if (!question.transforms.empty()) {
    auto transformed = std::make_unique<TransformReduction>(question);
    live_limits = transformed->live_limits();
    stack.push(std::move(transformed));
  }
  stack.push(std::make_unique<AllowedGraph>(stack.problem()));
  if (!live_limits.empty())
    stack.push(std::make_unique<LiveLimitReduction>(stack.problem(), live_limits));
  if (stack.problem().graph.has_network_ops())
    stack.push(std::make_unique<NetworkReduction>(stack.problem(), limits));
  return stack;
}

}  // namespace lowtide::driver
