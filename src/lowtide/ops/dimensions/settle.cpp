// The second pass: in the order of the ops it takes back what cannot be, and lets sums through.
#include <algorithm>
#include <utility>

#include "lowtide/ops/dimensions/following.h"
#include "lowtide/ops/dimensions/rule.h"
#include "lowtide/ops/dimensions/words.h"

namespace lowtide::dimensions {

Following::Following(const Graph& graph, std::span<const OpId> region)
    : graph_(graph),
      may_carry_(graph.op_count(), region.empty()),
      cut_together_(graph.tensor_count()),
      cut_with_(graph.op_count()) {
  for (const OpId op : region) may_carry_[op.index()] = true;
  reach_.tensors.resize(graph.tensor_count());
  reach_.carries.resize(graph.op_count());
  reach_.stops.resize(graph.op_count());
}

bool Following::described(OpId id) {
  const Op& op = graph_.op(id);
  const auto first = [&]() -> TensorId {
    for (const TensorId tensor : graph_.inputs(id))
      if (reach_.tensors[tensor.index()].state != State::whole) return tensor;
    return graph_.outputs(id).empty() ? TensorId() : graph_.outputs(id).front();
  };
  if (!graph_.mutates(id).empty()) {
    stop(id, StopCause::mixes, graph_.mutates(id).front(), "changes its operand in place");
    return false;
  }
  const auto unsaid = [&](std::span<const TensorId> tensors, const std::vector<Operand>& list) {
    return std::ranges::find_if(tensors, [&](TensorId tensor) {
      return std::ranges::find(list, tensor, &Operand::tensor) == list.end();
    });
  };
  const auto out = unsaid(graph_.outputs(id), op.results);
  const auto in = std::ranges::find_if(graph_.inputs(id), [&](TensorId tensor) {
    return reach_.tensors[tensor.index()].state != State::whole &&
           std::ranges::find(op.operands, tensor, &Operand::tensor) == op.operands.end();
  });
  if (out == graph_.outputs(id).end() && in == graph_.inputs(id).end()) return true;
  stop(id, StopCause::unknown, first(),
       graph_.is_barrier(id) ? "is the barrier between forward and backward"
                             : "does not say how it sees its tensors");
  return false;
}

namespace {

class Settler : private Following {
 public:
  explicit Settler(Following followed)
      : Following(std::move(followed)), made_(graph_.tensor_count(), false) {}

  Reach settle() {
    for (const OpId op : graph_.order()) settle(op);
    measure();
    return std::move(reach_);
  }

 private:
  void settle(OpId id) {
    if (may_carry_[id.index()]) {
      if (reach_.carries[id.index()])
        confirm(id);
      else if (!reach_.stops[id.index()])
        let_through(id);
      const auto misplaced = misplaced_.find(id);
      if (open(id) && misplaced != misplaced_.end()) reach_.stops[id.index()] = misplaced->second;
    }
    const auto& carry = reach_.carries[id.index()];
    const Op& op = graph_.op(id);
    if (carry && !carry->before) {
      for (std::size_t r = 0; r < op.results.size(); ++r)
        if (carry->results[r].state != State::whole) made_[op.results[r].tensor.index()] = true;
      return;
    }
    if (carry) return;
    // Made whole, so no sum is left to be made.
    for (const TensorId tensor : graph_.outputs(id)) {
      TensorState& now = reach_.tensors[tensor.index()];
      if (now.state == State::partial) now = {};
    }
  }

  void confirm(OpId id) {
    const Op& op = graph_.op(id);
    Carry& carry = *reach_.carries[id.index()];
    std::optional<Rule> rule;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& operand = op.operands[i];
      View& view = carry.operands[i];
      const bool made = made_[operand.tensor.index()];
      if (view.from_whole && made)
        return stop(id, StopCause::misplaced, operand.tensor,
                    "reads slices of " + name_of(operand) + " that the parts do not make");
      if (view.from_whole) end_at(operand);
      if (view.state != State::whole || state(operand).state == State::whole) continue;
      if (!rule) rule = rule_for(op);
      if (contains(rule->unread, i)) {
        if (!carry.before && !see_unread(operand, view) && made)
          return stop(id, StopCause::misplaced, operand.tensor,
                      "sees slices of " + name_of(operand) + " that are none of its storage");
        continue;
      }
      if (!made) continue;
      if (state(operand).state == State::partial)
        return stop(id, StopCause::sum, operand.tensor,
                    "reads a sum over the axis that is still to be made, " + name_of(operand));
      return stop(id, StopCause::conflict, operand.tensor,
                  "takes " + name_of(operand) + " whole, which the parts make");
    }
    for (const TensorId tensor : graph_.inputs(id))
      if (made_[tensor.index()] &&
          std::ranges::find(op.operands, tensor, &Operand::tensor) == op.operands.end())
        return stop(id, StopCause::unknown, tensor, "does not say how it sees a tensor");
  }

  // The axis goes no further up.
  void end_at(const Operand& operand) {
    if (graph_.is_input(operand.tensor)) return;
    const OpId maker = graph_.producer(operand.tensor);
    if (open(maker))
      stop(maker, StopCause::misplaced, operand.tensor,
           "makes a tensor of which slices are read that its storage does not have");
  }

  // What a part has of an operand that is not read; false if it is no view of that.
  bool see_unread(const Operand& operand, View& view) {
    const TensorState& now = state(operand);
    if (now.state == State::split) {
      const auto at = locate(operand, now.axis);
      if (std::holds_alternative<Misfit>(at)) return false;
      view.position = std::get<Position>(at);
    }
    view.state = now.state;
    return true;
  }

  void let_through(OpId id) {
    const Op& op = graph_.op(id);
    TensorId sum;
    for (const TensorId tensor : graph_.inputs(id))
      if (reach_.tensors[tensor.index()].state == State::partial && !sum.valid()) sum = tensor;
    if (!sum.valid() || !described(id)) return;
    const Rule rule = rule_for(op);
    const auto goes = [&](const std::vector<std::size_t>& list) {
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        const bool partial = state(op.operands[i]).state == State::partial;
        if (partial != contains(list, i)) return false;
        if (!partial && made_[op.operands[i].tensor.index()]) return false;
      }
      return !list.empty();
    };
    const bool free = std::ranges::all_of(
        op.results, [&](const Operand& made) { return state(made).state == State::whole; });
    const auto list = std::ranges::find_if(rule.linear, goes);
    if (list == rule.linear.end() || !free)
      return stop(id, StopCause::sum, sum, "reads a sum over the axis that is still to be made");
    Carry carry{0, std::vector<View>(op.operands.size()), std::vector<View>(op.results.size())};
    for (const std::size_t item : *list) {
      carry.operands[item].state = State::partial;
      const std::size_t maker = graph_.producer(op.operands[item].tensor).index();
      carry.extent = reach_.carries[maker]->extent;
      cut_with_[id.index()] = cut_with_[maker];
    }
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      carry.results[r].state = State::partial;
      state(op.results[r]) = {State::partial, {}};
    }
    reach_.carries[id.index()] = std::move(carry);
  }

  void measure() {
    for (std::size_t i = 0; i < reach_.tensors.size(); ++i)
      if (reach_.tensors[i].state == State::split)
        cut_together_.lengthen(i, reach_.tensors[i].axis.extent);
    for (std::size_t i = 0; i < reach_.tensors.size(); ++i)
      if (reach_.tensors[i].state == State::split)
        reach_.tensors[i].longest = cut_together_.longest(i);
    for (std::size_t i = 0; i < reach_.carries.size(); ++i)
      if (auto& carry = reach_.carries[i])
        carry->longest = cut_with_[i] ? cut_together_.longest(*cut_with_[i]) : carry->extent;
  }

  std::vector<bool> made_;  // tensors that parts make, in slices or as sums
};

}  // namespace

Reach settle(Following followed) { return Settler(std::move(followed)).settle(); }

}  // namespace lowtide::dimensions
