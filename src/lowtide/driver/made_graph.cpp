// Renumbering, there and back.
#include "lowtide/driver/made_graph.h"

#include <string>
#include <utility>

#include "lowtide/base/error.h"

namespace lowtide::driver {

namespace {

std::shared_ptr<const Applied> allowed(const Problem& asked) {
  for (const Transform& transform : asked.transforms)
    if (const std::string kind(kind_of(transform)); !has_technique(asked.techniques, kind))
      throw InputError("techniques", "\"" + kind + "\" is not among them, but a transform is one");
  return applied_to(asked, asked.transforms);
}

}  // namespace

MadeGraph::MadeGraph(const Problem& asked)
    : asked_(asked), made_(allowed(asked)), problem_(on_made(made_->now, asked)) {}

std::vector<Plan> MadeGraph::starts_for(const std::vector<Plan>& starts) const {
  std::vector<Plan> found;
  for (const Plan& start : starts)
    if (start.transforms == asked_.transforms) found.push_back(on_made(made_->now, start));
  return found;
}

solve::Watcher MadeGraph::told_to(solve::Watcher watcher) const {
  if (!watcher) return {};
  return [this, watcher = std::move(watcher)](const solve::Progress& now) {
    if (now.plan == nullptr) return watcher(now);
    const Plan plan = on_original(made_->now, asked_.transforms, *now.plan);
    solve::Progress told = now;
    told.plan = &plan;
    watcher(told);
  };
}

void MadeGraph::bring_back(std::optional<Plan>& plan) const {
  if (plan) plan = on_original(made_->now, asked_.transforms, *plan);
}

}  // namespace lowtide::driver
