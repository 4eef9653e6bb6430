// A tensor of the block is a tensor of the contraction if a node reads it that does not contain its
// producer, or an op that was taken out of a half.
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

// Adds the nodes of the level to the graph, one after the other.
class Contraction::Builder {
 public:
  // `options`: one for each child.
  Builder(Contraction& made, std::span<const std::size_t> options)
      : made_(made),
        problem_(made.task_.block),
        block_(problem_.graph()),
        level_(made.task_.level),
        options_(options),
        deadlines_(rerun_deadlines(block_, block_.order())),
        child_of_(block_.op_count(), kNone),
        forward_reruns_(level_.children.size(), 1),
        backward_reruns_(level_.children.size(), 1),
        tensors_(block_.tensor_count(), kMissing),
        saved_(level_.children.size(), kMissing),
        nodes_(block_.op_count(), kMissing) {
    for (std::size_t c = 0; c < level_.children.size(); ++c)
      for (const OpId op : level_.children[c].ops) child_of_[op.index()] = c;
  }

  // Decides which ops come before their half as separate ops, and which halves may then be
  // recomputed.
  void lift() {
    for (std::size_t i = 0; i < block_.op_count(); ++i) {
      const OpId op(i);
      const std::size_t child = child_of_[i];
      if (child == kNone || reruns(op)) continue;
      if (!problem_.is_forward(op))
        backward_reruns_[child] = 0;
      else if (waits_inside(op))
        forward_reruns_[child] = 0;
      else
        made_.lifted_[i] = 1;
    }
    for (std::size_t i = 0; i < block_.op_count(); ++i)
      if (made_.lifted_[i] != 0 && forward_reruns_[child_of_[i]] == 0) made_.lifted_[i] = 0;
  }

  void add(const LevelNode& node) {
    if (node.op.valid()) {
      add_alone(node.op);
      return;
    }
    if (node.kind == LevelNode::Kind::forward)
      for (const OpId op : level_.children[node.child].ops)
        if (is_lifted(op)) add_alone(op);
    add_half(node);
  }

  Graph build() {
    add_predecessors();
    for (std::size_t i = 0; i < ops_.size(); ++i) graph_.add_op(std::move(ops_[i]), links_[i]);
    std::vector<std::int64_t> outputs;
    for (const TensorId id : block_.outputs()) outputs.push_back(tensor(id));
    graph_.set_outputs(std::move(outputs));
    graph_.set_resident(block_.resident());
    return graph_.build();
  }

 private:
  static constexpr std::int64_t kMissing = -1;

  bool reruns(OpId op) const {
    return block_.recomputable(op) && deadlines_[op.index()] == block_.op_count();
  }
  bool waits_inside(OpId op) const {
    return std::ranges::any_of(block_.predecessors(op), [&](OpId before) {
      return child_of_[before.index()] == child_of_[op.index()];
    });
  }
  bool is_lifted(OpId op) const { return made_.lifted_[op.index()] != 0; }

  bool is_made_in(TensorId id, std::size_t child) const {
    const OpId maker = block_.producer(id);
    return maker.valid() && child_of_[maker.index()] == child && !is_lifted(maker);
  }
  // Whether the tensor exists before the backward.
  bool is_early(TensorId id) const {
    const OpId maker = block_.producer(id);
    return !maker.valid() || (maker != problem_.rest() && problem_.is_forward(maker));
  }
  // Whether a tensor of a half is needed outside of the child.
  bool leaves(TensorId id, std::size_t child) const {
    return block_.is_output(id) || std::ranges::any_of(block_.consumers(id), [&](OpId reader) {
             return child_of_[reader.index()] != child;
           });
  }

  // The tensor of the contraction for this tensor of the block.
  std::int64_t tensor(TensorId id) {
    if (std::int64_t& place = tensors_[id.index()]; place != kMissing) return place;
    Tensor made;
    made.bytes = block_.bytes(id);
    made.role = block_.is_input(id) ? Role::input : Role::activation;
    made.releasable = block_.is_input(id) && block_.tensor(id).releasable;
    made.stays = block_.stays(id);
    return tensors_[id.index()] = add_tensor(std::move(made));
  }
  std::int64_t add_tensor(Tensor made) {
    return static_cast<std::int64_t>(graph_.add_tensor(std::move(made)).index());
  }

  void add_alone(OpId id) {
    Op op;
    op.kind = block_.is_barrier(id) ? std::string(kBarrierKind) : std::string();
    op.time = block_.time(id);
    op.workspace = block_.workspace(id);
    op.recomputable = reruns(id);
    OpLinks links;
    for (const TensorId read : block_.inputs(id)) links.inputs.push_back(tensor(read));
    for (const TensorId made : block_.outputs(id)) links.outputs.push_back(tensor(made));
    for (const InPlacePair& pair : block_.in_place(id))
      links.in_place.push_back({tensor(pair.input), tensor(pair.output)});
    nodes_[id.index()] = static_cast<std::int64_t>(ops_.size());
    push(std::move(op), std::move(links), {.op = id, .schedule = nullptr});
  }

  void add_half(const LevelNode& node) {
    const Child& child = level_.children[node.child];
    const BlockOption& option = child.options[options_[node.child]];
    const bool forward = node.kind == LevelNode::Kind::forward;
    Op op;
    op.time = forward ? option.forward_time : option.backward_time;
    OpLinks links;
    Bytes held = option.saved;  // with the outputs
    for (const OpId inner : child.ops) {
      if (problem_.is_forward(inner) != forward) continue;
      if (is_lifted(inner)) {
        op.time -= block_.time(inner);
        continue;
      }
      nodes_[inner.index()] = static_cast<std::int64_t>(ops_.size());
      // Tensors that exist before the backward are listed by its option.
      for (const TensorId read : block_.inputs(inner))
        if (!is_made_in(read, node.child) && (forward || !is_early(read)))
          links.inputs.push_back(tensor(read));
      for (const TensorId made : block_.outputs(inner)) {
        if (!leaves(made, node.child)) continue;
        links.outputs.push_back(tensor(made));
        held += block_.bytes(made);
      }
    }
    if (forward)
      save(node.child, option, links);
    else
      read_saved(node.child, option, links);
    const Bytes peak = forward ? option.forward_peak : option.backward_peak;
    op.workspace = std::max(Bytes(), peak - held);
    op.recomputable = (forward ? forward_reruns_ : backward_reruns_)[node.child] != 0;
    push(std::move(op), std::move(links),
         {.op = {}, .schedule = forward ? &option.forward : &option.backward, .child = node.child});
  }

  // The saved tensors of the option are one tensor of the forward half.
  void save(std::size_t child, const BlockOption& option, OpLinks& links) {
    if (option.saved <= Bytes()) return;
    Tensor made;
    made.bytes = option.saved;
    saved_[child] = add_tensor(std::move(made));
    links.outputs.push_back(saved_[child]);
  }
  void read_saved(std::size_t child, const BlockOption& option, OpLinks& links) {
    const Child& of = level_.children[child];
    // The schedule of the half may read ops that were taken out of it.
    for (const OpId inner : option.backward)
      for (const TensorId read : block_.inputs(of.ops[inner.index()]))
        if (const OpId maker = block_.producer(read); maker.valid() && is_lifted(maker))
          links.inputs.push_back(tensor(read));
    const std::vector<TensorId> tensors = of.tensors(block_);
    for (const TensorId need : option.needs) links.inputs.push_back(tensor(tensors[need.index()]));
    if (saved_[child] != kMissing) links.inputs.push_back(saved_[child]);
  }

  void push(Op op, OpLinks links, Part part) {
    unique(links.inputs);
    unique(links.outputs);
    ops_.push_back(std::move(op));
    links_.push_back(std::move(links));
    made_.parts_.push_back(part);
  }

  // Adds the dependencies, `after` included.
  void add_predecessors() {
    for (std::size_t i = 0; i < block_.op_count(); ++i)
      for (const OpId op : block_.predecessors(OpId(i)))
        if (const std::int64_t before = nodes_[op.index()];
            before != nodes_[i] && before != kMissing)
          links_[static_cast<std::size_t>(nodes_[i])].after.push_back(before);
    for (OpLinks& links : links_) unique(links.after);
  }

  static void unique(std::vector<std::int64_t>& list) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  Contraction& made_;
  const BlockProblem& problem_;
  const Graph& block_;
  const Level& level_;
  std::span<const std::size_t> options_;
  std::vector<std::size_t> deadlines_;
  std::vector<std::size_t> child_of_;                           // by op of the block
  std::vector<std::uint8_t> forward_reruns_, backward_reruns_;  // by child
  std::vector<std::int64_t> tensors_;                           // by tensor of the block
  std::vector<std::int64_t> saved_;                             // by child
  std::vector<std::int64_t> nodes_;                             // by op of the block
  GraphBuilder graph_;
  std::vector<Op> ops_;
  std::vector<OpLinks> links_;
};

Contraction::Contraction(const BlockTask& task, std::span<const std::size_t> options)
    : task_(task), lifted_(task.block.graph().op_count(), 0) {
  Builder builder(*this, options);
  builder.lift();
  for (const LevelNode& node : task.level.nodes) builder.add(node);
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
