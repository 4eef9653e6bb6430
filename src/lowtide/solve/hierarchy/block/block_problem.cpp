// Producers and readers of a tensor decide whether it crosses the border. Prices come from one run
// of `simulate` over both halves, minus the border tensors in use at each step.
#include "lowtide/solve/hierarchy/block/block_problem.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/graph/builder.h"
#include "lowtide/plan/plan.h"
#include "lowtide/sim/simulate.h"
#include "lowtide/solve/sequence/just_in_time.h"

namespace lowtide::solve::hierarchy {

namespace {

// The border tensors that are in use on behalf of the surroundings.
class Border {
 public:
  explicit Border(const Graph& graph) : graph_(graph), in_use_(graph.tensor_count(), 0) {}

  void enter(TensorId id) {
    if (std::exchange(in_use_[id.index()], std::uint8_t{1}) == 0) bytes_ += graph_.bytes(id);
  }
  void leave(TensorId id) {
    if (std::exchange(in_use_[id.index()], std::uint8_t{0}) != 0) bytes_ -= graph_.bytes(id);
  }
  bool has(TensorId id) const { return in_use_[id.index()] != 0; }
  Bytes bytes() const { return bytes_; }

 private:
  const Graph& graph_;
  std::vector<std::uint8_t> in_use_;
  Bytes bytes_;
};

}  // namespace

// Makes the graph of a block: its tensors, in the order in which its ops name them, its ops, and
// `rest`.
class BlockProblem::Builder {
 public:
  Builder(BlockProblem& problem, const Partition& partition)
      : problem_(problem), network_(problem.network_), partition_(partition) {
    for (const OpId op : problem.ops_) {
      local_op_.emplace(op, local_op_.size());
      problem.forward_.push_back(phase(op) == Phase::forward ? 1 : 0);
      has_backward_ = has_backward_ || problem.forward_.back() == 0;
    }
  }

  Graph build(BlockId id, std::span<const std::uint8_t> reruns) {
    graph_.set_name(label(partition_, id));
    graph_.set_tick(network_.tick());
    std::vector<OpLinks> links;
    for (const OpId op : problem_.ops_) {
      OpLinks& of = links.emplace_back();
      for (const TensorId read : network_.inputs(op)) of.inputs.push_back(tensor(read));
      for (const TensorId made : network_.outputs(op)) of.outputs.push_back(tensor(made));
    }
    for (std::size_t i = 0; i < links.size(); ++i)
      add_op(problem_.ops_[i], reruns, std::move(links[i]));
    if (has_backward_) add_rest();
    graph_.set_order(order());
    graph_.set_outputs(std::move(outputs_));
    return graph_.build();
  }

 private:
  Phase phase(OpId op) const { return partition_.phases.of[op]; }
  bool is_inside(OpId op) const { return op.valid() && local_op_.contains(op); }
  bool is_forward(std::size_t op) const { return problem_.forward_[op] != 0; }

  // The tensor of the block for this tensor of the network.
  std::int64_t tensor(TensorId id) {
    const auto [place, is_new] =
        local_tensor_.try_emplace(id, static_cast<std::int64_t>(problem_.tensors_.size()));
    if (!is_new) return place->second;
    problem_.tensors_.push_back(id);
    Tensor made;
    made.name = network_.tensor(id).name;
    made.bytes = network_.bytes(id);
    if (is_inside(network_.producer(id))) {
      add_given(id, place->second);
    } else {
      made.role = Role::input;
      add_read(id, place->second);
    }
    graph_.add_tensor(std::move(made));
    return place->second;
  }

  // A tensor from outside is an input. It is made by `rest` if only the backward half reads it and
  // the backward, or an op between the forward and the backward, makes it.
  void add_read(TensorId id, std::int64_t local) {
    const OpId maker = network_.producer(id);
    const bool late = maker.valid() &&
                      (phase(maker) == Phase::backward || !partition_.phases.layer[maker].valid());
    const bool early = std::ranges::any_of(network_.consumers(id), [&](OpId reader) {
      return is_inside(reader) && phase(reader) == Phase::forward;
    });
    if (late && !early) {
      rest_.outputs.push_back(local);
      problem_.brought_ += network_.bytes(id);
    } else {
      problem_.inputs_ += network_.bytes(id);
    }
  }
  // A tensor of the block is read by `rest`, or is an output, if it is needed outside.
  void add_given(TensorId id, std::int64_t local) {
    const bool given = std::ranges::any_of(network_.consumers(id),
                                           [&](OpId reader) { return !is_inside(reader); });
    const bool early = phase(network_.producer(id)) == Phase::forward && has_backward_;
    if (given && early) {
      rest_.inputs.push_back(local);
      problem_.given_ += network_.bytes(id);
    }
    if (network_.is_output(id) || (given && !early)) outputs_.push_back(local);
  }

  void add_op(OpId id, std::span<const std::uint8_t> reruns, OpLinks links) {
    Op op;
    op.name = network_.op(id).name;
    op.time = network_.time(id);
    op.workspace = network_.workspace(id);
    op.recomputable = network_.recomputable(id) && reruns[id.index()] != 0;
    // Includes the readers of tensors that the op mutates: it runs once, and they may not run after
    // it.
    for (const OpId before : network_.predecessors(id))
      if (const auto found = local_op_.find(before); found != local_op_.end())
        links.after.push_back(static_cast<std::int64_t>(found->second));
    for (const InPlacePair& pair : network_.in_place(id))
      links.in_place.push_back({local_tensor_.at(pair.input), local_tensor_.at(pair.output)});
    graph_.add_op(std::move(op), links);
  }

  void add_rest() {
    const std::vector<OpId>& ops = problem_.ops_;
    problem_.rest_ = OpId(ops.size());
    // Ops on which ops outside wait come before them, even if those read none of their tensors.
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (is_forward(i) &&
          !std::ranges::all_of(network_.successors(ops[i]), [&](OpId op) { return is_inside(op); }))
        rest_.after.push_back(static_cast<std::int64_t>(i));
    Op op;
    op.name = "rest";
    op.kind = kBarrierKind;
    graph_.add_op(std::move(op), rest_);
  }

  // The forward half as in the network, `rest`, and the backward half.
  std::vector<std::int64_t> order() const {
    std::vector<std::int64_t> order(problem_.ops_.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::sort(order, {}, [&](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      return std::pair(!is_forward(at), network_.position(problem_.ops_[at]));
    });
    if (!has_backward_) return order;
    const auto half = std::ranges::count(problem_.forward_, std::uint8_t{1});
    order.insert(order.begin() + half, static_cast<std::int64_t>(order.size()));
    return order;
  }

  BlockProblem& problem_;
  const Graph& network_;
  const Partition& partition_;
  std::unordered_map<OpId, std::size_t> local_op_;
  std::unordered_map<TensorId, std::int64_t> local_tensor_;
  bool has_backward_ = false;
  GraphBuilder graph_;
  OpLinks rest_;
  std::vector<std::int64_t> outputs_;
};

BlockProblem::BlockProblem(const Graph& network, const Partition& partition, BlockId id,
                           std::span<const OpId> ops, std::span<const std::uint8_t> reruns)
    : network_(network), ops_(ops.begin(), ops.end()) {
  check(ops_.size() == partition.blocks[id].op_count(), "the ops of a block are all of them");
  made_ = Builder(*this, partition).build(id, reruns);
}

BlockProblem::BlockProblem(const Graph& network, const Partition& partition) : network_(network) {
  for (const Phase phase : partition.phases.of) forward_.push_back(phase == Phase::forward ? 1 : 0);
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
    // Tensors that cannot be recomputed stay, and their inputs may be freed.
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
  option.forward = std::move(forward);
  option.backward = std::move(backward);
  const std::vector<OpId> sequence = sequence_of(option);
  for (const OpId op : option.forward) option.forward_time += graph.time(op);
  for (const OpId op : option.backward) option.backward_time += graph.time(op);
  const Plan plan = plan_from_sequence(graph, sequence);
  const Timeline timeline = simulate(graph, plan);
  if (timeline.violation) throw InputError("forward", timeline.violation->reason);
  measure(plan, timeline, option);
  return option;
}

std::vector<OpId> BlockProblem::sequence_of(const BlockOption& option) const {
  const Graph& graph = this->graph();
  std::vector<OpId> sequence;
  std::vector<std::uint8_t> done(graph.op_count(), 0);
  const auto add = [&](const std::vector<OpId>& half, bool first, const char* place) {
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
    }
  };
  add(option.forward, true, "forward");
  if (has_backward()) {
    for (const OpId before : graph.predecessors(rest_))
      if (done[before.index()] == 0)
        throw InputError("forward",
                         graph.label(before) + " is missing, for which ops outside the block wait");
    sequence.push_back(rest_);
    done[rest_.index()] = 1;
  }
  add(option.backward, false, "backward");
  for (std::size_t i = 0; i < op_count(); ++i)
    if (done[i] == 0)
      throw InputError(is_forward(OpId(i)) ? "forward" : "backward",
                       graph.label(OpId(i)) + " is missing");
  return sequence;
}

void BlockProblem::measure(const Plan& plan, const Timeline& timeline, BlockOption& option) const {
  const Graph& graph = this->graph();
  Border border(graph);
  for (std::size_t i = 0; made_ && i < graph.tensor_count(); ++i)
    if (graph.is_input(TensorId(i))) border.enter(TensorId(i));
  std::vector<std::uint8_t> needed(graph.tensor_count(), 0);
  bool behind = false;  // `rest`
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind == StepKind::free) border.leave(step.tensor());
    if (!step.is_compute()) continue;
    if (step.op() == rest_) {
      option.saved = timeline.live[i] - inputs_ - given_ - brought_;
      for (const TensorId id : graph.inputs(rest_)) border.enter(id);
      for (const TensorId id : graph.outputs(rest_)) border.enter(id);
      behind = true;
      continue;
    }
    Bytes& peak = behind ? option.backward_peak : option.forward_peak;
    peak = std::max(peak, timeline.live[i] - border.bytes());
    if (behind)
      for (const TensorId id : graph.inputs(step.op()))
        if (border.has(id) && graph.producer(id) != rest_) needed[id.index()] = 1;
    for (const TensorId id : plan.overwritten(step)) border.leave(id);
  }
  for (std::size_t i = 0; i < needed.size(); ++i)
    if (needed[i] != 0) option.needs.emplace_back(i);
}

Bytes BlockProblem::least_peak(OpId op) const {
  const Graph& graph = this->graph();
  Bytes bytes = graph.workspace(op);
  for (const TensorId id : graph.outputs(op)) bytes += graph.bytes(id);
  for (const InPlacePair& pair : graph.in_place(op)) bytes -= graph.bytes(pair.output);
  for (const TensorId id : graph.inputs(op)) {
    const OpId maker = graph.producer(id);
    // In the backward half, outputs of the forward half belong to the surroundings.
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
  // Copying a graph takes about as long as extracting it.
  limited = (limited ? std::move(*limited) : Graph(graph)).with_workspaces(workspaces);
  return {.graph = *limited, .budget = most, .order = Order::given};
}

}  // namespace lowtide::solve::hierarchy
