// A tensor of the block is one of the contraction if it is read by another node than those of the
// block that makes it, or by an op that was taken out of one.
#include "lowtide/solve/hierarchy/block/contraction.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lowtide/graph/builder.h"
#include "lowtide/solve/sequence/sequence.h"

namespace lowtide::solve::hierarchy {

namespace {

constexpr std::size_t kNone = SIZE_MAX;

}  // namespace

Contraction::Contraction(const BlockTask& task, std::span<const std::size_t> options)
    : task_(task), lifted_(task.block.graph().op_count(), 0) {
  const Graph& block = task.block.graph();
  const Level& level = task.level;
  std::vector<std::size_t> child_of(block.op_count(), kNone);
  for (std::size_t c = 0; c < level.children.size(); ++c)
    for (const OpId op : level.children[c].ops) child_of[op.index()] = c;
  const auto made_in = [&](TensorId id) {
    const OpId maker = block.producer(id);
    return maker.valid() ? child_of[maker.index()] : kNone;
  };
  const std::vector<std::size_t> deadlines = rerun_deadlines(block, block.order());
  const auto reruns = [&](OpId op) {
    return block.recomputable(op) && deadlines[op.index()] == block.op_count();
  };
  // Halves that may run again, once what may not is taken out of them.
  std::vector<std::uint8_t> again_forward(level.children.size(), 1), again_backward(again_forward);
  for (std::size_t i = 0; i < block.op_count(); ++i) {
    const OpId op(i);
    if (child_of[i] == kNone || reruns(op)) continue;
    if (!task.block.is_forward(op)) {
      again_backward[child_of[i]] = 0;
      continue;
    }
    const bool first = std::ranges::none_of(block.predecessors(op), [&](OpId before) {
      return child_of[before.index()] == child_of[i];
    });
    if (first)
      lifted_[i] = 1;
    else
      again_forward[child_of[i]] = 0;
  }
  for (std::size_t i = 0; i < block.op_count(); ++i)
    if (lifted_[i] != 0 && again_forward[child_of[i]] == 0) lifted_[i] = 0;

  GraphBuilder builder;
  std::vector<std::int64_t> tensor(block.tensor_count(), -1);
  const auto add = [&](TensorId id) {
    if (std::int64_t& place = tensor[id.index()]; place >= 0) return place;
    Tensor made;
    made.bytes = block.bytes(id);
    made.role = block.is_input(id) ? Role::input : Role::activation;
    made.releasable = block.is_input(id) && block.tensor(id).releasable;
    made.stays = block.stays(id);
    tensor[id.index()] = static_cast<std::int64_t>(builder.add_tensor(std::move(made)).index());
    return tensor[id.index()];
  };
  const auto leaves = [&](TensorId id) {
    const std::size_t own = made_in(id);
    return block.is_output(id) || lifted_[block.producer(id).index()] != 0 ||
           std::ranges::any_of(block.consumers(id),
                               [&](OpId reader) { return child_of[reader.index()] != own; });
  };
  std::vector<std::int64_t> phantom(level.children.size(), -1);
  std::vector<std::int64_t> node_of(block.op_count(), -1);  // of each op of the block
  std::vector<OpLinks> links;
  std::vector<Op> ops;
  const auto unique = [](std::vector<std::int64_t>& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  const auto finish = [&](Op op, OpLinks link, Part part) {
    unique(link.inputs);
    unique(link.outputs);
    ops.push_back(std::move(op));
    links.push_back(std::move(link));
    parts_.push_back(part);
  };
  const auto add_alone = [&](OpId id) {
    Op op;
    op.kind = block.is_barrier(id) ? std::string(kBarrierKind) : std::string();
    op.time = block.time(id);
    op.workspace = block.workspace(id);
    op.recomputable = reruns(id);
    OpLinks link;
    for (const TensorId input : block.inputs(id)) link.inputs.push_back(add(input));
    for (const TensorId made : block.outputs(id)) link.outputs.push_back(add(made));
    node_of[id.index()] = static_cast<std::int64_t>(ops.size());
    for (const InPlacePair& pair : block.in_place(id))
      link.in_place.push_back({tensor[pair.input.index()], tensor[pair.output.index()]});
    finish(std::move(op), std::move(link), {.op = id, .schedule = nullptr});
  };
  for (const LevelNode& node : level.nodes) {
    if (node.op.valid()) {
      add_alone(node.op);
      continue;
    }
    const Child& child = level.children[node.child];
    const BlockOption& option = child.options[options[node.child]];
    const bool forward = node.kind == LevelNode::Kind::forward;
    if (forward)
      for (const OpId op : child.ops)
        if (lifted_[op.index()] != 0) add_alone(op);
    Op op;
    OpLinks link;
    Bytes held = forward ? Bytes() : option.saved;
    Bytes saved = option.saved;
    op.time = forward ? option.forward_time : option.backward_time;
    for (const OpId inner : child.ops) {
      if (task.block.is_forward(inner) != forward) continue;
      const bool taken_out = lifted_[inner.index()] != 0;
      if (taken_out) op.time -= block.time(inner);
      if (!taken_out) node_of[inner.index()] = static_cast<std::int64_t>(ops.size());
      for (const TensorId input : block.inputs(inner)) {
        const OpId maker = block.producer(input);
        const bool own = made_in(input) == node.child && lifted_[maker.index()] == 0;
        // What was there before the backward, its option says itself.
        const bool early =
            !maker.valid() || (maker != task.block.rest() && task.block.is_forward(maker));
        if (!own && !taken_out && (forward || !early)) link.inputs.push_back(add(input));
      }
      for (const TensorId made : block.outputs(inner)) {
        if (taken_out || !leaves(made)) continue;
        link.outputs.push_back(add(made));
        held += block.bytes(made);
      }
    }
    if (!forward) {
      // Its own schedule may read what was taken out of the forward half.
      for (const OpId inner : option.backward)
        for (const TensorId input : block.inputs(child.ops[inner.index()]))
          if (const OpId maker = block.producer(input);
              maker.valid() && lifted_[maker.index()] != 0)
            link.inputs.push_back(add(input));
      const std::vector<TensorId> tensors = child.tensors(block);
      for (const TensorId need : option.needs) link.inputs.push_back(add(tensors[need.index()]));
      if (phantom[node.child] >= 0) link.inputs.push_back(phantom[node.child]);
    } else if (saved > Bytes()) {
      Tensor made;
      made.bytes = saved;
      phantom[node.child] = static_cast<std::int64_t>(builder.add_tensor(std::move(made)).index());
      link.outputs.push_back(phantom[node.child]);
      held += saved;
    }
    const Bytes peak = forward ? option.forward_peak : option.backward_peak;
    op.workspace = std::max(Bytes(), peak - held);
    op.recomputable = (forward ? again_forward : again_backward)[node.child] != 0;
    finish(
        std::move(op), std::move(link),
        {.op = {}, .schedule = forward ? &option.forward : &option.backward, .child = node.child});
  }
  // What comes before what, soft dependencies too.
  for (std::size_t i = 0; i < block.op_count(); ++i)
    for (const OpId before : block.predecessors(OpId(i)))
      if (node_of[before.index()] != node_of[i] && node_of[before.index()] >= 0)
        links[static_cast<std::size_t>(node_of[i])].after.push_back(node_of[before.index()]);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    unique(links[i].after);
    builder.add_op(std::move(ops[i]), links[i]);
  }
  std::vector<std::int64_t> outputs;
  for (const TensorId id : block.outputs()) outputs.push_back(add(id));
  builder.set_outputs(std::move(outputs));
  builder.set_resident(block.resident());
  graph_ = builder.build();
}

std::vector<OpId> Contraction::spelled_out(std::span<const OpId> sequence) const {
  std::vector<OpId> ops;
  for (const OpId node : sequence) {
    const Part& part = parts_[node.index()];
    if (part.schedule == nullptr) {
      ops.push_back(part.op);
      continue;
    }
    for (const OpId inner : *part.schedule)
      if (const OpId op = task_.level.children[part.child].ops[inner.index()];
          lifted_[op.index()] == 0)
        ops.push_back(op);
  }
  std::optional<Graph> limited;
  return without_unread(task_.block.problem({Bytes::max(), Bytes::max()}, limited), ops);
}

}  // namespace lowtide::solve::hierarchy
