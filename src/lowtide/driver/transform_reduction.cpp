// Ops and tensors are renumbered into the transformed graph, and plans back.
#include "lowtide/driver/transform_reduction.h"

#include <string>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::driver {

namespace {

std::shared_ptr<const Applied> allowed(const Problem& asked) {
  for (const Transform& transform : asked.transforms)
    if (const std::string kind(kind_of(transform)); !has_technique(asked.techniques, kind))
      throw InputError("techniques", "\"" + kind + "\" is not among them, but a transform is one");
  return apply_cached(asked, asked.transforms);
}

}  // namespace

TransformReduction::TransformReduction(const Problem& asked)
    : asked_(asked), applied_(allowed(asked)), problem_(on_transformed(applied_->now, asked)) {}

std::vector<Plan> TransformReduction::starts_for(const std::vector<Plan>& starts) const {
  std::vector<Plan> found;
  for (const Plan& start : starts)
    if (start.transforms == asked_.transforms)
      found.push_back(on_transformed(applied_->now, start));
  return found;
}

solve::Watcher TransformReduction::told_to(solve::Watcher watcher) const {
  if (!watcher) return {};
  return [this, watcher = std::move(watcher)](const solve::Progress& now) {
    if (now.plan == nullptr) return watcher(now);
    const Plan plan = on_original(applied_->now, asked_.transforms, *now.plan);
    solve::Progress told = now;
    told.plan = &plan;
    watcher(told);
  };
}

void TransformReduction::bring_back(std::optional<Plan>& plan) const {
  if (plan) plan = on_original(applied_->now, asked_.transforms, *plan);
}

}  // namespace lowtide::driver
