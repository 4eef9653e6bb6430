// Renumbers ops and tensors for the transformed graph, and plans back.
#include "lowtide/driver/transform_reduction.h"

#include <optional>
#include <string>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::driver {

namespace {

std::shared_ptr<const Applied> apply_allowed(const Question& question) {
  for (const Transform& transform : question.transforms)
    if (const std::string kind(kind_of(transform));
        !has_technique(question.problem.techniques, kind))
      throw InputError("techniques", "\"" + kind + "\" is not among them, but a transform is one");
  return apply_cached(question, question.transforms);
}

}  // namespace

TransformReduction::TransformReduction(const Question& original)
    : original_(original),
      applied_(apply_allowed(original)),
      problem_(with_graph(original.problem, applied_->now.graph)),
      live_limits_(on_transformed(applied_->now, original.live_limits)) {}

std::vector<Plan> TransformReduction::starts(std::vector<Plan> plans) const {
  std::erase_if(plans, [&](const Plan& plan) { return plan.transforms != original_.transforms; });
  for (Plan& plan : plans) plan = on_transformed(applied_->now, plan);
  return plans;
}

solve::Watcher TransformReduction::translate(solve::Watcher watcher) {
  if (!watcher) return {};
  return [this, watcher = std::move(watcher)](const solve::Progress& reduced) {
    if (reduced.plan == nullptr) return watcher(reduced);
    const Plan plan = on_original(applied_->now, original_.transforms, *reduced.plan);
    solve::Progress progress = reduced;
    progress.plan = &plan;
    watcher(progress);
  };
}

void TransformReduction::bring_back(Answer& answer) const {
  for (std::optional<Plan>* plan : {&answer.outcome.plan, &answer.repair_start, &answer.smallest})
    if (*plan) *plan = on_original(applied_->now, original_.transforms, **plan);
}

}  // namespace lowtide::driver
