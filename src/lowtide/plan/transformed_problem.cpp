// Renumbering.
#include "lowtide/plan/transformed_problem.h"

#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/transforms/transform_cache.h"

namespace lowtide {

namespace {

template <class OfOp, class OfTensor>
Plan renumbered(const Plan& plan, OfOp of_op, OfTensor of_tensor) {
  Plan result;
  result.machine = plan.machine;
  result.steps = plan.steps;
  for (Step& step : result.steps)
    step.index = static_cast<std::int32_t>(step.is_compute() ? of_op(step.op()).index()
                                                             : of_tensor(step.tensor()).index());
  result.in_place_of.reserve(plan.in_place_of.size());
  for (const TensorId id : plan.in_place_of) result.in_place_of.push_back(of_tensor(id));
  return result;
}

template <class AnyId>
AnyId found(const std::vector<AnyId>& places, AnyId id) {
  if (!id.valid() || id.index() >= places.size() || !places[id.index()].valid())
    return AnyId(kMaxCount);
  return places[id.index()];
}

}  // namespace

Plan on_transformed(const TransformedGraph& transformed, const Plan& plan) {
  return renumbered(
      plan, [&](OpId id) { return found(transformed.ops, id); },
      [&](TensorId id) { return found(transformed.tensors, id); });
}

Plan on_original(const TransformedGraph& transformed, std::span<const Transform> transforms,
                 const Plan& plan) {
  Plan result = renumbered(
      plan, [&](OpId id) { return transformed.op_index[id]; },
      [&](TensorId id) { return transformed.tensor_index[id]; });
  result.transforms.assign(transforms.begin(), transforms.end());
  return result;
}

std::vector<LiveLimit> on_transformed(const TransformedGraph& transformed,
                                      std::vector<LiveLimit> limits) {
  for (LiveLimit& limit : limits) {
    const OpId op = limit.op;
    limit.op =
        op.valid() && op.index() < transformed.ops.size() ? transformed.ops[op.index()] : OpId();
    if (!limit.op.valid())
      throw InputError("live_limits", "op " + std::to_string(op.index()) +
                                          " has a limit, and the transforms leave no such op");
  }
  return limits;
}

std::shared_ptr<const Applied> apply_cached(const Question& question,
                                            std::span<const Transform> transforms) {
  const Graph& graph = question.problem.graph;
  if (question.transform_cache && &question.transform_cache->graph() == &graph)
    return question.transform_cache->apply(transforms);
  return std::make_shared<const Applied>(
      Applied{{transforms.begin(), transforms.end()}, apply_transforms(graph, transforms)});
}

std::shared_ptr<const Applied> cache_applied(const Question& question, Applied applied) {
  if (question.transform_cache && &question.transform_cache->graph() == &question.problem.graph)
    return question.transform_cache->add(std::move(applied));
  return std::make_shared<const Applied>(std::move(applied));
}

PlanOnGraph::PlanOnGraph(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan) {
  if (plan.transforms.empty()) return;
  transformed_ = apply_transforms(graph, plan.transforms);
  on_transformed_ = on_transformed(*transformed_, plan);
}

}  // namespace lowtide
