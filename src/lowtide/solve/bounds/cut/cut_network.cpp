// The network is built backwards from the tensors that are certainly read after the cut point. Ops
// are nodes. A tensor that is needed in any case has no node: its price is a supply of its
// producer's node. Neither has a tensor that only one op of the network reads: its price is the
// capacity of an arc between the two ops.
//
// With a machine, an input that must be live at the end may be on the host at the cut point. A
// tensor whose home is the host has a host copy from the start, without a transfer, until an op
// changes it in place. Then a new copy must be made at some time.
#include "lowtide/solve/bounds/cut/cut_network.h"

#include <algorithm>

namespace lowtide::solve::bounds {

namespace {

class Builder {
 public:
  Builder(const Problem& problem, const CutPoint& cut_point)
      : graph_(problem.graph),
        hosts_(problem.machine.has_value()),
        cut_point_(cut_point),
        after_(graph_, cut_point),
        state_(graph_.tensor_count(), State::absent),
        node_(graph_.op_count(), -1) {}

  enum class State : std::uint8_t {
    absent,  // not read after the cut point, as far as is known
    fixed,   // live at the cut point in every plan
    needed,  // read after the cut point in every plan
    soft,    // read after the cut point if a certain op runs again
  };

  // The bytes of the tensors that are live at the cut point in every plan, and of the workspace.
  Bytes fix_live_tensors() {
    Bytes bytes = graph_.resident() + graph_.least_workspace(cut_point_.op);
    for (std::size_t i = 0; i < graph_.tensor_count(); ++i)
      if (is_always_live(TensorId(i))) bytes += fix(TensorId(i));
    for (TensorId id : graph_.inputs(cut_point_.op)) bytes += fix(id);
    for (TensorId id : graph_.outputs(cut_point_.op)) bytes += fix(id);
    return bytes;
  }

  // Finds the tensors and ops of the network. Returns the bytes of the tensors that must be kept
  // because they cannot be recomputed.
  Bytes collect_choices() {
    for (std::size_t i = 0; i < graph_.op_count(); ++i)
      if (cut_point_.side[i] == Side::after)
        for (TensorId id : graph_.inputs(OpId(i))) add_choice(id, State::needed);
    for (TensorId id : graph_.outputs()) add_choice(id, State::needed);
    for (std::size_t i = 0; hosts_ && i < graph_.tensor_count(); ++i)
      if (const TensorId id(i); graph_.on_host(id) ? changed(id) : !graph_.freeable(id))
        add_choice(id, State::needed);
    Bytes forced;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const OpId producer = graph_.producer(tensors[i]);
      if (after_.can_run(producer)) {
        if (node_[producer.index()] >= 0) continue;
        node_[producer.index()] = static_cast<std::int32_t>(ops.size());
        ops.push_back(producer);
        for (TensorId id : graph_.inputs(producer)) add_choice(id, State::soft);
      } else if (!hosts_ && state(tensors[i]) == State::needed) {
        forced += fix(tensors[i]);
      }
    }
    std::erase_if(tensors, [&](TensorId id) { return state(id) == State::fixed; });
    return forced;
  }

  State& state(TensorId id) { return state_[id.index()]; }
  std::int32_t node(OpId op) const { return op.valid() ? node_[op.index()] : -1; }
  Side side(OpId op) const { return cut_point_.side[op.index()]; }
  bool changed(TensorId id) const { return after_.changed(id); }

  std::vector<TensorId> tensors;
  std::vector<OpId> ops;

 private:
  Bytes fix(TensorId id) {
    if (state(id) == State::fixed) return Bytes(0);
    state(id) = State::fixed;
    return graph_.bytes(id);
  }

  // Adds the tensor unless it is known already, has no bytes, or is made after the cut point.
  void add_choice(TensorId id, State as) {
    const OpId producer = graph_.producer(id);
    if (state(id) != State::absent || graph_.bytes(id) == Bytes(0)) return;
    if (producer.valid() && side(producer) == Side::after) return;
    state(id) = as;
    tensors.push_back(id);
  }

  bool is_always_live(TensorId id) const {
    return !graph_.freeable(id) && !graph_.on_host(id) && (!hosts_ || graph_.stays(id));
  }

  const Graph& graph_;
  bool hosts_;
  const CutPoint& cut_point_;
  AfterCut after_;
  std::vector<State> state_;
  std::vector<std::int32_t> node_;
};

// The time of a transfer; the largest value if no plan can make one.
Ticks least_time(const Link& link, std::int64_t bytes) {
  if (link.latency < Ticks(0) || link.bytes <= Bytes(0) || link.ticks < Ticks(0))
    return Ticks::max();
  try {
    return link.transfer_time(Bytes(bytes));
  } catch (const OverflowError&) {
    return Ticks::max();
  }
}

}  // namespace

CutNetwork::CutNetwork(const Problem& problem, const CutPoint& cut_point)
    : hosts_(problem.machine.has_value()) {
  const Graph& graph = problem.graph;
  Builder builder(problem, cut_point);
  fixed_ = builder.fix_live_tensors();
  fixed_ += builder.collect_choices();
  ops_ = std::move(builder.ops);
  for (const OpId op : ops_) {
    flow_.add_node();
    sides_.push_back(builder.side(op));
  }
  for (std::size_t i = 0; hosts_ && i < graph.op_count(); ++i)
    times_[static_cast<std::size_t>(builder.side(OpId(i)))] += graph.time(OpId(i));

  // Number of readers of soft tensors. A tensor with several readers has a node that stands for
  // them.
  std::vector<std::int32_t> readers(graph.tensor_count(), 0), node(graph.tensor_count(), -1);
  using State = Builder::State;
  for (const OpId op : ops_)
    for (TensorId id : graph.inputs(op))
      if (builder.state(id) == State::soft) ++readers[id.index()];
  for (const TensorId id : builder.tensors)
    if (readers[id.index()] > 1) node[id.index()] = flow_.add_node();
  for (std::size_t i = 0; i < ops_.size(); ++i)
    for (TensorId id : graph.inputs(ops_[i])) {
      const auto reader = static_cast<std::int32_t>(i);
      if (builder.state(id) != State::soft) continue;
      if (readers[id.index()] > 1)
        unbounded_.push_back(flow_.add_arc(reader, node[id.index()]));
      else
        node[id.index()] = reader;
    }
  for (const TensorId id : builder.tensors) {
    const bool needed = builder.state(id) == State::needed;
    Choice choice{id,
                  graph.bytes(id).count(),
                  Ticks(0),
                  Ticks(0),
                  needed,
                  needed ? -1 : node[id.index()],
                  builder.node(graph.producer(id)),
                  -1};
    if (hosts_) {
      const bool changed = builder.changed(id), at_home = graph.on_host(id);
      // A tensor at home on the host needs no transfer out, unless an op has changed it. A changed
      // tensor is not read any more; it only needs a host copy at the end.
      if (!at_home || changed)
        choice.out = least_time(problem.machine->device_to_host, choice.bytes);
      if (!at_home || !changed || graph.is_output(id))
        choice.in = least_time(problem.machine->host_to_device, choice.bytes);
    }
    if (!needed && choice.producer >= 0) choice.arc = flow_.add_arc(choice.reader, choice.producer);
    choices_.push_back(choice);
  }
  flow_.build();
}

void CutNetwork::clear() {
  flow_.clear();
  for (const std::int32_t arc : unbounded_) flow_.grow_capacity(arc, MaxFlow::kUnbounded);
}

void CutNetwork::grow_price(const Choice& choice, std::int64_t by) {
  if (choice.outright()) return;
  if (choice.needed)
    flow_.grow_supply(choice.producer, by);
  else if (choice.arc >= 0)
    flow_.grow_capacity(choice.arc, by);
  else
    flow_.grow_drain(choice.reader, by);
}

}  // namespace lowtide::solve::bounds
