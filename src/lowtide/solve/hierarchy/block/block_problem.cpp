// The border is told from the inside by who makes a tensor and who reads it. Prices come from one
// run of `simulate` over both halves, less what of the border was in use at each step.
#include "lowtide/solve/hierarchy/block/block_problem.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"
#include "lowtide/plan/plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/just_in_time.h"

namespace lowtide::solve::hierarchy {

BlockProblem::BlockProblem(const Graph& network, const Partition& partition, BlockId id,
                           std::span<const OpId> ops, std::span<const std::uint8_t> reruns)
    : network_(network), ops_(ops.begin(), ops.end()) {
  check(ops_.size() == partition.blocks[id].op_count(), "the ops of a block are all of them");
  made_ = make(network, partition, id, reruns);
}

BlockProblem::BlockProblem(const Graph& network, const Partition& partition) : network_(network) {
  for (const Phase phase : partition.phases.of) forward_.push_back(phase == Phase::forward ? 1 : 0);
}

Graph BlockProblem::make(const Graph& network, const Partition& partition, BlockId block,
                         std::span<const std::uint8_t> reruns) {
  const IdVector<OpId, Phase>& phase = partition.phases.of;
  std::unordered_map<OpId, std::size_t> local_op;
  for (std::size_t i = 0; i < ops_.size(); ++i) local_op.emplace(ops_[i], i);
  const auto inside = [&](OpId op) { return op.valid() && local_op.contains(op); };
  bool has_backward = false;
  for (const OpId op : ops_) {
    forward_.push_back(phase[op] == Phase::forward ? 1 : 0);
    has_backward = has_backward || forward_.back() == 0;
  }
  GraphBuilder builder;
  builder.set_name(label(partition, block));
  builder.set_tick(network.tick());
  std::unordered_map<TensorId, std::int64_t> local_tensor;
  std::vector<std::int64_t> outputs;
  OpLinks rest;
  const auto add = [&](TensorId id) {
    const auto [place, is_new] =
        local_tensor.try_emplace(id, static_cast<std::int64_t>(tensors_.size()));
    if (!is_new) return place->second;
    tensors_.push_back(id);
    Tensor tensor;
    tensor.name = network.tensor(id).name;
    tensor.bytes = network.bytes(id);
    const OpId maker = network.producer(id);
    if (!inside(maker)) {
      // By the backward, or by what stands between it and the forward.
      const bool late = maker.valid() &&
                        (phase[maker] == Phase::backward || !partition.phases.layer[maker].valid());
      const bool early = std::ranges::any_of(network.consumers(id), [&](OpId reader) {
        return inside(reader) && phase[reader] == Phase::forward;
      });
      tensor.role = Role::input;
      if (late && !early) {
        rest.outputs.push_back(place->second);
        brought_ += tensor.bytes;
      } else {
        inputs_ += tensor.bytes;
      }
    } else {
      const bool given =
          std::ranges::any_of(network.consumers(id), [&](OpId reader) { return !inside(reader); });
      const bool early = phase[maker] == Phase::forward && has_backward;
      if (given && early) {
        rest.inputs.push_back(place->second);
        given_ += tensor.bytes;
      }
      if (network.is_output(id) || (given && !early)) outputs.push_back(place->second);
    }
    builder.add_tensor(std::move(tensor));
    return place->second;
  };
  std::vector<std::vector<std::int64_t>> inputs(ops_.size()), made(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    for (const TensorId id : network.inputs(ops_[i])) inputs[i].push_back(add(id));
    for (const TensorId id : network.outputs(ops_[i])) made[i].push_back(add(id));
  }
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const OpId id = ops_[i];
    Op op;
    op.name = network.op(id).name;
    op.time = network.time(id);
    op.workspace = network.workspace(id);
    op.recomputable = network.recomputable(id) && reruns[id.index()] != 0;
    OpLinks links;
    links.inputs = std::move(inputs[i]);
    links.outputs = std::move(made[i]);
    // Also those that read what the op mutates: it runs once, and they may not after it.
    for (const OpId before : network.predecessors(id))
      if (const auto found = local_op.find(before); found != local_op.end())
        links.after.push_back(static_cast<std::int64_t>(found->second));
    for (const InPlacePair& pair : network.in_place(id))
      links.in_place.push_back({local_tensor.at(pair.input), local_tensor.at(pair.output)});
    builder.add_op(std::move(op), links);
  }
  if (has_backward) {
    rest_ = OpId(ops_.size());
    // What ops outside wait for comes before them, whether or not they read anything of it.
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (forward_[i] != 0 && !std::ranges::all_of(network.successors(ops_[i]), inside))
        rest.after.push_back(static_cast<std::int64_t>(i));
    Op op;
    op.name = "rest";
    op.kind = kBarrierKind;
    builder.add_op(std::move(op), rest);
  }
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < ops_.size(); ++i) order.push_back(static_cast<std::int64_t>(i));
  std::ranges::sort(order, {}, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return std::pair(forward_[at] == 0, network.position(ops_[at]));
  });
  if (has_backward) {
    const auto half = std::ranges::count(forward_, std::uint8_t{1});
    order.insert(order.begin() + half, static_cast<std::int64_t>(ops_.size()));
  }
  builder.set_order(std::move(order));
  builder.set_outputs(std::move(outputs));
  return builder.build();
}

std::vector<OpId> BlockProblem::in_order(bool forward) const {
  const Graph& graph = this->graph();
  std::vector<OpId> half;
  for (const OpId op : graph.order())
    if (op != rest_ && is_forward(op) == forward) half.push_back(op);
  return half;
}

BlockOption BlockProblem::save_all() const { return price(in_order(true), in_order(false)); }

std::optional<BlockOption> BlockProblem::recompute_all() const {
  const Graph& graph = this->graph();
  if (!has_backward()) return std::nullopt;
  std::vector<TensorId> dropped;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id(i);
    const OpId maker = graph.producer(id);
    // What cannot be made again stays, and what it is made of may go.
    if (maker.valid() && maker != rest_ && is_forward(maker) && graph.recomputable(maker))
      dropped.push_back(id);
  }
  std::optional<Graph> limited;
  const auto sequence =
      sequence_without(problem({Bytes::max(), Bytes::max()}, limited), rest_, dropped);
  if (!sequence) return std::nullopt;
  BlockOption option = price(*sequence);
  if (option.time() == graph.total_time()) return std::nullopt;
  return option;
}

BlockOption BlockProblem::price(std::span<const OpId> sequence) const {
  const auto rest = std::ranges::find(sequence, rest_);
  std::vector<OpId> forward(sequence.begin(), rest), backward;
  if (rest != sequence.end()) backward.assign(rest + 1, sequence.end());
  return price(std::move(forward), std::move(backward));
}

BlockOption BlockProblem::price(std::vector<OpId> forward, std::vector<OpId> backward) const {
  const Graph& graph = this->graph();
  BlockOption option;
  std::vector<OpId> sequence;
  std::vector<std::uint8_t> done(graph.op_count(), 0);
  const auto take = [&](const std::vector<OpId>& half, bool first, const char* place) {
    for (const OpId op : half) {
      if (!op.valid() || op.index() >= op_count())
        throw InputError(place, "the block has no such op");
      if (first && has_backward() && !is_forward(op))
        throw InputError(place, graph.label(op) + " is an op of the backward half");
      for (const OpId before : graph.predecessors(op))
        if (done[op.index()] == 0 && done[before.index()] == 0)
          throw InputError(place, graph.label(op) + " comes before " + graph.label(before) +
                                      ", which it depends on");
      if (std::exchange(done[op.index()], std::uint8_t{1}) != 0 && !graph.recomputable(op))
        throw InputError(place, graph.label(op) + " may be computed only once");
      sequence.push_back(op);
      (first ? option.forward_time : option.backward_time) += graph.time(op);
    }
  };
  take(forward, true, "forward");
  if (has_backward()) {
    for (const OpId before : graph.predecessors(rest_))
      if (done[before.index()] == 0)
        throw InputError("forward",
                         graph.label(before) + " is missing, for which ops outside the block wait");
    sequence.push_back(rest_);
    done[rest_.index()] = 1;
  }
  take(backward, false, "backward");
  for (std::size_t i = 0; i < op_count(); ++i)
    if (done[i] == 0)
      throw InputError(is_forward(OpId(i)) ? "forward" : "backward",
                       graph.label(OpId(i)) + " is missing");
  const Plan plan = plan_from_sequence(graph, sequence);
  const Timeline timeline = simulate(graph, plan);
  if (timeline.violation) throw InputError("forward", timeline.violation->reason);

  // Whether a tensor is in use on behalf of the surroundings.
  std::vector<std::uint8_t> outside(graph.tensor_count(), 0);
  Bytes border = inputs_;
  for (std::size_t i = 0; i < graph.tensor_count(); ++i)
    outside[i] = made_ && graph.is_input(TensorId(i)) ? 1 : 0;
  const auto leaves = [&](TensorId id) {
    if (std::exchange(outside[id.index()], std::uint8_t{0}) != 0) border -= graph.bytes(id);
  };
  std::vector<std::uint8_t> needed(graph.tensor_count(), 0);
  bool behind = false;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind == StepKind::free) leaves(step.tensor());
    if (!step.is_compute()) continue;
    if (step.op() == rest_) {
      option.saved = timeline.live[i] - inputs_ - given_ - brought_;
      for (const TensorId id : graph.inputs(rest_)) outside[id.index()] = 1;
      for (const TensorId id : graph.outputs(rest_)) outside[id.index()] = 1;
      border += given_ + brought_;
      behind = true;
      continue;
    }
    Bytes& peak = behind ? option.backward_peak : option.forward_peak;
    peak = std::max(peak, timeline.live[i] - border);
    if (behind)
      for (const TensorId id : graph.inputs(step.op()))
        if (outside[id.index()] != 0 && graph.producer(id) != rest_) needed[id.index()] = 1;
    for (const TensorId id : plan.overwritten(step)) leaves(id);
  }
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i] != 0) option.needs.emplace_back(i);
  option.forward = std::move(forward);
  option.backward = std::move(backward);
  return option;
}

Bytes BlockProblem::least_peak(OpId op) const {
  const Graph& graph = this->graph();
  Bytes bytes = graph.workspace(op);
  for (const TensorId id : graph.outputs(op)) bytes += graph.bytes(id);
  for (const InPlacePair& pair : graph.in_place(op)) bytes -= graph.bytes(pair.output);
  for (const TensorId id : graph.inputs(op)) {
    const OpId maker = graph.producer(id);
    // What the forward half gives is the surroundings' in the backward half.
    const bool ours = maker.valid() && maker != rest_ &&
                      (!has_backward() || is_forward(op) || !is_forward(maker) ||
                       std::ranges::find(graph.consumers(id), rest_) == graph.consumers(id).end());
    if (ours) bytes += graph.bytes(id);
  }
  return bytes;
}

Problem BlockProblem::problem(const BlockBudget& budget, std::optional<Graph>& limited) const {
  const Graph& graph = this->graph();
  const Bytes border = inputs_ + given_ + brought_;
  const bool endless = budget.peak > Bytes::max() - border;
  const Bytes most = endless ? Bytes::max() : budget.peak + border;
  if (!has_backward() || endless || budget.saved >= budget.peak)
    return {.graph = graph, .budget = most, .order = Order::given};
  std::vector<Bytes> workspaces;
  for (std::size_t i = 0; i < graph.op_count(); ++i) workspaces.push_back(graph.workspace(OpId(i)));
  workspaces[rest_.index()] = budget.peak - budget.saved;
  // To copy a graph takes about as long as to cut it.
  limited = (limited ? std::move(*limited) : Graph(graph)).with_workspaces(workspaces);
  return {.graph = *limited, .budget = most, .order = Order::given};
}

}  // namespace lowtide::solve::hierarchy
