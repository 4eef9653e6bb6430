// Expands the schedules of children.
#include "lowtide/solve/hierarchy/block/level.h"

namespace lowtide::solve::hierarchy {

std::vector<TensorId> Child::tensors(const Graph& around) const {
  const Graph& own = problem->graph();
  std::vector<TensorId> found(own.tensor_count());
  const auto match = [&](std::span<const TensorId> from, std::span<const TensorId> to) {
    for (std::size_t i = 0; i < from.size(); ++i) found[from[i].index()] = to[i];
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    match(own.inputs(OpId(i)), around.inputs(ops[i]));
    match(own.outputs(OpId(i)), around.outputs(ops[i]));
  }
  return found;
}

std::size_t Level::scheduled() const {
  std::size_t ops = nodes.size();
  for (const Child& child : children)
    for (const BlockOption& option : child.options)
      ops += option.forward.size() + option.backward.size();
  return ops;
}

std::vector<OpId> Level::sequence(std::span<const LevelStep> steps) const {
  std::vector<OpId> ops;
  for (const LevelStep& step : steps) {
    const LevelNode& node = nodes[step.node];
    if (node.op.valid()) {
      ops.push_back(node.op);
      continue;
    }
    const Child& child = children[node.child];
    const BlockOption& option = child.options[step.option];
    const bool forward = node.kind == LevelNode::Kind::forward;
    for (const OpId op : forward ? option.forward : option.backward)
      ops.push_back(child.ops[op.index()]);
  }
  return ops;
}

}  // namespace lowtide::solve::hierarchy
