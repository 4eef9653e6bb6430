// Problem: a list of substitutions is applied in sequence, each to the graph that the ones before
// it made. Each of these graphs takes linear time to build, and there are hundreds.
//
// Idea: a rule only inspects its ops, their operands with the producers and readers of these, and
// the readers of their results. So substitutions whose neighbourhoods do not overlap are applied to
// one graph, and the next graph is built once for all of them. New ops stand in the order as late
// as their first reader allows. Other ops move only if necessary; a substitution that moves others
// is applied by itself.
//
// Invariant: the draft is the same as if the substitutions were applied one by one, including the
// order of ops.
//
// Loses: if each substitution inspects ops that the one before it made, as in a chain of sums.
#include "lowtide/transforms/substitutes.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace lowtide {

namespace {

// Makes the order topological again, and moves as few ops as possible.
class Placing {
 public:
  // The ops from `first_made` on are new.
  Placing(Draft& draft, const TransformedGraph& now, std::size_t first_made, std::string_view rule)
      : draft_(draft), now_(now), rule_(rule) {
    for (std::size_t i = first_made; i < draft.op_count(); ++i) added_.emplace_back(i);
  }

  void place() {
    const std::vector<OpId> given = std::exchange(draft_.order, {});
    collect_links();
    state_.assign(draft_.op_count(), kNew);
    for (const OpId op : given) emit(op);
    for (const OpId op : added_) emit(op);
  }

 private:
  enum : std::uint8_t { kNew, kWaits, kDone };
  struct Waiting {
    OpId op;
    std::vector<OpId> needs;
    std::size_t next = 0;
  };

  void begin(OpId op) {
    state_[op.index()] = kWaits;
    waiting_.push_back({op, needs_of(op)});
  }

  void emit(OpId last) {
    if (state_[last.index()] != kNew || draft_.op(last).gone) return;
    begin(last);
    while (!waiting_.empty()) {
      Waiting& now = waiting_.back();
      if (now.next == now.needs.size()) {
        state_[now.op.index()] = kDone;
        draft_.order.push_back(now.op);
        waiting_.pop_back();
        continue;
      }
      const OpId need = now.needs[now.next++];
      if (state_[need.index()] == kWaits)
        refuse_transform("substitute: \"" + std::string(rule_) + "\": " + draft_.label(need) +
                         " would have to come before itself");
      if (state_[need.index()] == kNew) begin(need);
    }
  }

  void collect_links() {
    const auto note = [&](OpId id) {
      for (const TensorId tensor : draft_.op(id).outputs) producer_[tensor] = id;
      for (const TensorId tensor : draft_.op(id).mutates) readers_[tensor];
    };
    for (const OpId id : now_.op_index)
      if (!draft_.op(id).gone) note(id);
    for (const OpId id : added_) note(id);
    const auto read = [&](OpId id) {
      for (const TensorId tensor : draft_.op(id).inputs)
        if (const auto found = readers_.find(tensor); found != readers_.end())
          found->second.push_back(id);
    };
    if (readers_.empty()) return;
    for (const OpId id : now_.op_index)
      if (!draft_.op(id).gone) read(id);
    for (const OpId id : added_) read(id);
  }

  std::vector<OpId> needs_of(OpId id) const {
    const DraftOp& op = draft_.op(id);
    std::vector<OpId> needs = op.after;
    for (const TensorId tensor : op.inputs)
      if (const auto maker = producer_.find(tensor); maker != producer_.end())
        needs.push_back(maker->second);
    for (const TensorId tensor : op.mutates)
      for (const OpId reader : readers_.at(tensor))
        if (reader != id) needs.push_back(reader);
    return needs;
  }

  Draft& draft_;
  const TransformedGraph& now_;
  std::string_view rule_;
  std::vector<OpId> added_;
  std::vector<std::uint8_t> state_;
  std::vector<Waiting> waiting_;
  std::unordered_map<TensorId, OpId> producer_;
  std::unordered_map<TensorId, std::vector<OpId>> readers_;  // of tensors that are changed
};

// Calls `visit(before, now)` for each changed operand of the reader: the tensors that the operand
// was before and is now.
template <class Visit>
void for_changed(const Graph& graph, const Replacement::Reader& reader, const Visit& visit) {
  const std::vector<Operand>& before = graph.op(reader.op).operands;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != reader.operands[i]) visit(before[i].tensor, reader.operands[i].tensor);
}

}  // namespace

Substitutes::Substitutes(Draft& draft, const TransformedGraph& now)
    : draft_(draft),
      now_(now),
      first_made_(draft.op_count()),
      ops_(now.graph.op_count(), 0),
      tensors_(now.graph.tensor_count(), 0),
      mutators_(now.graph.tensor_count()) {
  for (const OpId op : AllIds<OpId>(now.graph.op_count()))
    for (const TensorId tensor : now.graph.mutates(op)) mutators_[tensor.index()] = op;
}

bool Substitutes::take(const Substitute& substitute, std::size_t index) {
  if (moves_ || (count_ > 0 && !sees_none(substitute))) return false;
  const Replacement made = replacement_by(draft_, now_, substitute);
  const bool moves = !moves_none(made);
  if (moves && count_ > 0) return false;
  begun_ = true;
  put(draft_, now_, substitute, index, made);
  begun_ = false;
  touch(made);
  ++count_;
  moves_ = moves;
  last_rule_ = substitute.rule;
  return true;
}

void Substitutes::finish() {
  begun_ = true;
  Placing(draft_, now_, first_made_, last_rule_).place();
}

bool Substitutes::sees_none(const Substitute& substitute) const {
  const Graph& graph = now_.graph;
  const auto is_touched = [&](OpId op) { return op.valid() && ops_[op.index()] != 0; };
  const auto is_same = [&](TensorId tensor) {
    return tensors_[tensor.index()] == 0 && !is_touched(graph.producer(tensor)) &&
           std::ranges::none_of(graph.consumers(tensor), is_touched);
  };
  const Rule* rule = find_substitution_rule(substitute.rule);
  const bool looks_back = rule == nullptr || rule->looks_back;
  return std::ranges::all_of(substitute.ops, [&](OpId index) {
    if (!index.valid() || index.index() >= now_.ops.size()) return false;
    const OpId op = now_.ops[index.index()];
    if (!op.valid() || is_touched(op)) return false;
    return std::ranges::all_of(graph.outputs(op), is_same) &&
           (!looks_back || std::ranges::all_of(graph.inputs(op), is_same));
  });
}

// Whether no op has to move: in the present order, each new op has a position after the producers
// of its inputs, and before the readers of its outputs and the mutators of its inputs.
bool Substitutes::moves_none(const Replacement& made) {
  before_.clear();
  const Graph& graph = now_.graph;
  constexpr std::int64_t kFirst = -1, kLast = std::numeric_limits<std::int64_t>::max();
  const auto position = [&](OpId op) { return static_cast<std::int64_t>(graph.position(op)); };
  const auto is_new = [&](TensorId tensor) { return tensor.index() >= graph.tensor_count(); };
  const auto producer_position = [&](TensorId tensor) {
    const OpId maker = graph.producer(tensor);
    return maker.valid() ? position(maker) : kFirst;
  };
  const auto mutator_position = [&](TensorId tensor) {
    const OpId mutator = mutators_[tensor.index()];
    return mutator.valid() ? position(mutator) : kLast;
  };
  // By tensor: the earliest position of its producer, and the position of its first reader.
  std::unordered_map<TensorId, std::int64_t> from, until;
  for (const Replacement::Made& one : made.ops) {
    std::int64_t at = kFirst;
    for (const TensorId tensor : one.inputs) {
      at = std::max(at, is_new(tensor) ? from[tensor] : producer_position(tensor));
    }
    for (const TensorId tensor : one.outputs) {
      from[tensor] = at;
      until[tensor] = kLast;
      if (is_new(tensor)) continue;
      for (const OpId reader : graph.consumers(tensor))
        if (std::ranges::find(made.gone, reader) == made.gone.end())
          until[tensor] = std::min(until[tensor], position(reader));
    }
  }
  for (const Replacement::Reader& reader : made.readers) {
    bool stays = true;
    for_changed(graph, reader, [&](TensorId, TensorId tensor) {
      if (is_new(tensor))
        until[tensor] = std::min(until[tensor], position(reader.op));
      else
        stays = stays && producer_position(tensor) < position(reader.op) &&
                position(reader.op) < mutator_position(tensor);
    });
    if (!stays) return false;
  }
  for (std::size_t i = made.ops.size(); i-- > 0;) {
    std::int64_t first = kLast, at = kFirst;
    for (const TensorId tensor : made.ops[i].outputs) {
      first = std::min(first, until[tensor]);
      at = std::max(at, from[tensor]);
    }
    for (const TensorId tensor : made.ops[i].inputs)
      if (!is_new(tensor) && mutator_position(tensor) < first) {
        first = mutator_position(tensor);
        before_.push_back(mutators_[tensor.index()]);
      }
    if (at >= first) return false;
    for (const TensorId tensor : made.ops[i].inputs)
      if (is_new(tensor)) until[tensor] = std::min(until[tensor], first);
  }
  // If two substitutions of one group place ops directly before the same mutator, these ops would
  // come in another order than if the substitutions were applied one by one.
  return std::ranges::none_of(before_, [&](OpId op) { return ops_[op.index()] != 0; });
}

void Substitutes::touch(const Replacement& made) {
  const Graph& graph = now_.graph;
  for (const OpId op : before_) ops_[op.index()] = 1;
  const auto note = [&](TensorId tensor) {
    if (tensor.index() < graph.tensor_count()) tensors_[tensor.index()] = 1;
  };
  for (const OpId op : made.gone) {
    ops_[op.index()] = 1;
    std::ranges::for_each(graph.inputs(op), note);
    std::ranges::for_each(graph.outputs(op), note);
  }
  for (const Replacement::Made& one : made.ops) {
    std::ranges::for_each(one.inputs, note);
    // Readers of a tensor with a new producer now come after that producer.
    for (const TensorId tensor : one.outputs)
      if (tensor.index() < graph.tensor_count())
        for (const OpId reader : graph.consumers(tensor)) ops_[reader.index()] = 1;
  }
  for (const Replacement::Reader& reader : made.readers) {
    ops_[reader.op.index()] = 1;
    for_changed(graph, reader, [&](TensorId was, TensorId is) {
      note(was);
      note(is);
    });
  }
}

}  // namespace lowtide
