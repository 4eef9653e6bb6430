// Schedules of children, spelled out.
#include "lowtide/solve/hierarchy/block/level.h"

namespace lowtide::solve::hierarchy {

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
