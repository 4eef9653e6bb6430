// Following axes through a graph.
//
// Two passes. The first goes from the seeds to producers and consumers, first in first out: an op
// next to a split tensor takes the letter that names the dimensions along which it sees the axis
// there, and that letter splits its other operands and results. Each op decides once. Letters that
// sum wait until nothing else is left to follow, because what they say of operands that nobody has
// reached yet is the weakest link: in Z' S the rows of Z say nothing of how S was meant. The second
// pass goes through the ops in their order and takes back those of which an operand that they take
// whole is made by parts; there sums that are still to be made go through ops that are linear.
//
// That an op was taken back leaves what was reached through it: a tensor that is not made by parts
// can be read in slices, whatever made it, so every op stays right by itself.
//
// Loses: an op decides by the first axis that comes to it. Where it sees several at once and only
// one of them can be followed (attention over positions, of its own queries and keys), another
// order might have kept more.
#include "lowtide/ops/dimensions/follow.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/ops/dimensions/components.h"
#include "lowtide/ops/dimensions/rule.h"
#include "lowtide/ops/dimensions/words.h"

namespace lowtide::dimensions {

namespace {

bool names(const std::vector<Along>& list, std::size_t item) {
  return std::ranges::find(list, item, &Along::item) != list.end();
}

bool contains(const std::vector<std::size_t>& list, std::size_t item) {
  return std::ranges::find(list, item) != list.end();
}

// Where an op sees the axis before it has decided.
struct Seen {
  std::vector<std::pair<std::size_t, Position>> operands, results;
  // Operands of split tensors, of other slices than these have.
  std::vector<std::size_t> elsewhere;

  bool empty() const { return operands.empty() && results.empty(); }
};

class Follower {
 public:
  Follower(const Graph& graph, std::span<const OpId> region)
      : graph_(graph),
        may_carry_(graph.op_count(), region.empty()),
        cut_together_(graph.tensor_count()) {
    for (const OpId op : region) may_carry_[op.index()] = true;
    reach_.tensors.resize(graph.tensor_count());
    reach_.carries.resize(graph.op_count());
    reach_.stops.resize(graph.op_count());
    made_.assign(graph.tensor_count(), false);
    cut_with_.resize(graph.op_count());
  }

  Reach follow(std::span<const Seed> seeds) {
    for (const Seed& seed : seeds) plant(seed);
    while (!tensors_.empty() || !waiting_.empty()) {
      if (tensors_.empty()) {
        const OpId op = waiting_.front();
        waiting_.pop_front();
        decide(op, /*sums=*/true);
        continue;
      }
      const TensorId tensor = tensors_.front();
      tensors_.pop_front();
      if (!graph_.is_input(tensor)) decide(graph_.producer(tensor), false);
      for (const OpId op : graph_.consumers(tensor)) decide(op, false);
    }
    for (const OpId op : graph_.order()) settle(op);
    measure();
    return std::move(reach_);
  }

 private:
  TensorState& state(const Operand& operand) { return reach_.tensors[operand.tensor.index()]; }
  bool open(OpId op) const {
    return may_carry_[op.index()] && !reach_.carries[op.index()] && !reach_.stops[op.index()];
  }

  void plant(const Seed& seed) {
    const Axis axis = axis_of(graph_, seed);
    TensorState& now = reach_.tensors[seed.tensor.index()];
    if (now.state == State::split && now.axis != axis)
      throw InputError(graph_.label(seed.tensor), "is cut along two different axes");
    if (now.state == State::split) return;
    now = {State::split, axis};
    tensors_.push_back(seed.tensor);
  }

  void stop(OpId op, StopCause cause, TensorId tensor, std::string reason) {
    reach_.carries[op.index()].reset();
    reach_.stops[op.index()] = Stop{cause, tensor, std::move(reason)};
  }

  // Where the op sees split tensors; false if it has stopped, for it cannot. What is outside may be
  // read in other slices than its own, as labels that are shifted, if the axis comes another way.
  bool look(OpId id, const Rule& rule, Seen& seen) {
    const Op& op = graph_.op(id);
    const auto look_at = [&](const std::vector<Operand>& list, auto& found, bool operands) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        const TensorState& now = state(list[i]);
        if (now.state != State::split || (operands && contains(rule.unread, i))) continue;
        const auto at = locate(list[i], now.axis);
        if (const auto* misfit = std::get_if<Misfit>(&at)) {
          if (operands && outside(list[i])) {
            seen.elsewhere.push_back(i);
            misplaced_.try_emplace(id, Stop{StopCause::misplaced, list[i].tensor, misfit->reason});
            continue;
          }
          stop(id, StopCause::misplaced, list[i].tensor, misfit->reason);
          return false;
        }
        found.emplace_back(i, std::get<Position>(at));
      }
      return true;
    };
    return look_at(op.operands, seen.operands, true) && look_at(op.results, seen.results, false);
  }

  // What stands in the graph at the start may be read whole by one op and in slices by another.
  bool outside(const Operand& operand) const {
    return graph_.is_input(operand.tensor) || !may_carry_[graph_.producer(operand.tensor).index()];
  }

  // Whether the letter names all that was seen, at one place inside each dimension; which is in
  // `as`.
  bool fits(const Op& op, const Letter& letter, const Seen& seen, Position& as) {
    as = {.dim = 0, .inner = 0, .extent = 0};
    const auto agrees = [&](const std::vector<Along>& list, std::size_t item, const Position& at) {
      for (const Along& along : list)
        if (along.item == item && along.dim == at.dim && (as.inner == 0 || as.inner == at.inner)) {
          as = at;
          return true;
        }
      return false;
    };
    for (const auto& [item, at] : seen.results)
      if (!agrees(letter.results, item, at) &&
          (names(letter.results, item) || letter.unnamed[item] == Unnamed::sum))
        return false;
    for (const auto& [item, at] : seen.operands)
      if (!agrees(letter.operands, item, at) &&
          (names(letter.operands, item) || !outside(op.operands[item])))
        return false;
    return as.inner > 0 && as.inner % letter.block == 0;
  }

  // The first thing that the op sees, for a reason.
  void refuse(OpId id, const Rule& rule, const Seen& seen) {
    const Op& op = graph_.op(id);
    const bool result = seen.operands.empty();
    const auto& [item, at] = result ? seen.results.front() : seen.operands.front();
    const Operand& where = result ? op.results[item] : op.operands[item];
    const auto has = [&](const Letter& letter) {
      const auto& list = result ? letter.results : letter.operands;
      return std::ranges::any_of(list, [&, item = item, dim = at.dim](const Along& along) {
        return along.item == item && along.dim == dim;
      });
    };
    if (!rule.known)
      return stop(id, StopCause::unknown, where.tensor,
                  op.kind.empty() ? "has no kind" : "is of a kind without a rule, " + op.kind);
    if (std::ranges::any_of(rule.letters, has))
      return stop(id, StopCause::conflict, where.tensor,
                  "sees the axis along dimensions that do not go together: " + listed(op, seen));
    const std::string verb = rule.reason.empty() ? "takes all of" : rule.reason;
    stop(id, StopCause::mixes, where.tensor, verb + " " + dimension(at.dim, where));
  }

  static std::string listed(const Op& op, const Seen& seen) {
    std::string text;
    const auto add = [&](const std::vector<Operand>& list, const auto& found) {
      for (const auto& [item, at] : found)
        text += (text.empty() ? "" : ", ") + dimension(at.dim, list[item]);
    };
    add(op.operands, seen.operands);
    add(op.results, seen.results);
    return text;
  }

  // Whatever says nothing of a tensor cannot be followed.
  bool described(OpId id) {
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

  void decide(OpId id, bool sums) {
    if (!open(id) || !described(id)) return;
    const Op& op = graph_.op(id);
    const Rule rule = rule_for(op);
    Seen seen;
    if (!look(id, rule, seen) || seen.empty()) return;
    Position as;
    const auto letter = std::ranges::find_if(
        rule.letters, [&](const Letter& one) { return fits(op, one, seen, as); });
    if (letter == rule.letters.end()) return refuse(id, rule, seen);
    if (letter->reduces() && !sums) {
      waiting_.push_back(id);
      return;
    }
    apply(id, rule, *letter, seen, as);
  }

  // Of a crop, the axis of which the operand sees the first slices.
  std::optional<Axis> cropped(const Operand& operand, const Position& at) const {
    const Bytes bytes = graph_.bytes(operand.tensor);
    if (sees_all(operand, bytes)) return std::nullopt;
    const auto axis = place_crop(operand, at, layout_of(graph_, operand.tensor), bytes);
    return axis && axis->extent > at.extent ? axis : std::nullopt;
  }

  // A result is all of its tensor; an operand may be a crop.
  static bool sees(const Operand& operand, const Axis& axis, const Position& at, bool result) {
    const auto seen = locate(operand, axis);
    const auto* found = std::get_if<Position>(&seen);
    return found != nullptr && *found == at && (!result || at.extent == axis.extent);
  }

  // All that the letter splits, if it can split all.
  void apply(OpId id, const Rule& rule, const Letter& letter, const Seen& seen,
             const Position& as) {
    const Op& op = graph_.op(id);
    Carry carry{as.extent, std::vector<View>(op.operands.size()),
                std::vector<View>(op.results.size()), letter.weight, rule.drawn};
    std::vector<std::pair<TensorId, TensorState>> reached;
    const auto split = [&](const Along& along, const Operand& operand, View& view, bool result) {
      Position at{along.dim, as.inner, as.extent};
      if (letter.crops) {
        at.extent = operand.shape[along.dim] / as.inner;
        carry.extent = std::max(carry.extent, at.extent);
      }
      view = {.state = State::split, .position = at};
      const TensorState now = state(operand);
      if (now.state == State::split && sees(operand, now.axis, at, result)) return true;
      const Bytes bytes = graph_.bytes(operand.tensor);
      const auto longer = result ? std::nullopt : cropped(operand, at);
      if (longer && now.state == State::whole && !outside(operand)) {
        reached.emplace_back(operand.tensor, TensorState{State::split, *longer});
        return true;
      }
      const auto put = place(operand, at, bytes);
      const auto* misfit = std::get_if<Misfit>(&put);
      const bool elsewhere = !result && contains(seen.elsewhere, along.item);
      const bool may_read = elsewhere || (!result && now.state == State::whole);
      if (may_read && (elsewhere || longer || misfit != nullptr) && in_whole(operand, at, {0, 1})) {
        view.from_whole = true;
        return true;
      }
      if (misfit != nullptr) {
        stop(id, StopCause::misplaced, operand.tensor, misfit->reason);
        return false;
      }
      const auto& axis = std::get<std::optional<Axis>>(put);
      if (!axis && !result) {  // repeats itself along it
        view.state = State::whole;
        return true;
      }
      if (!axis || longer || now.state != State::whole) {
        stop(id, StopCause::conflict, operand.tensor,
             "would cut " + name_of(operand) + " along another axis than other ops do");
        return false;
      }
      reached.emplace_back(operand.tensor, TensorState{State::split, *axis});
      return true;
    };
    for (const Along& along : letter.operands)
      if (!split(along, op.operands[along.item], carry.operands[along.item], false)) return;
    for (const Along& along : letter.results)
      if (!split(along, op.results[along.item], carry.results[along.item], true)) return;
    for (std::size_t r = 0; r < op.results.size(); ++r) {
      if (names(letter.results, r)) continue;
      carry.results[r].before = letter.unnamed[r] == Unnamed::before;
      if (letter.unnamed[r] != Unnamed::sum) continue;
      carry.results[r].state = State::partial;
      if (state(op.results[r]).state != State::whole)
        return stop(id, StopCause::conflict, op.results[r].tensor,
                    "would make a sum over the axis in " + name_of(op.results[r]) +
                        ", of which other ops read slices");
      reached.emplace_back(op.results[r].tensor, TensorState{State::partial, {}});
    }
    // One tensor may stand there twice, in two ways.
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (reached[i].first == reached[k].first && reached[i].second != reached[k].second)
          return stop(id, StopCause::conflict, reached[i].first,
                      "would cut one tensor along two axes");
    for (const auto& [tensor, now] : reached) {
      TensorState& then = reach_.tensors[tensor.index()];
      if (then.state != State::whole) continue;
      then = now;
      if (now.state == State::split) tensors_.push_back(tensor);
    }
    unite(id, carry);
    reach_.carries[id.index()] = std::move(carry);
  }

  // What an op sees in slices is cut at the same places.
  void unite(OpId id, const Carry& carry) {
    const Op& op = graph_.op(id);
    std::optional<std::size_t>& first = cut_with_[id.index()];
    const auto unite_all = [&](const std::vector<Operand>& list, const std::vector<View>& views) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (views[i].state != State::split || views[i].from_whole) continue;
        if (!first) first = list[i].tensor.index();
        cut_together_.unite(*first, list[i].tensor.index());
      }
    };
    unite_all(op.operands, carry.operands);
    unite_all(op.results, carry.results);
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

  // In the order of the ops: takes back what cannot be, and lets sums through.
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

  const Graph& graph_;
  std::vector<bool> may_carry_, made_;  // ops; tensors that parts make, in slices or as sums
  Reach reach_;
  std::deque<TensorId> tensors_;              // split, and not yet followed
  std::deque<OpId> waiting_;                  // would sum
  std::unordered_map<OpId, Stop> misplaced_;  // why ops stop that the axis reaches no other way
  Components cut_together_;                   // tensors
  std::vector<std::optional<std::size_t>> cut_with_;  // a tensor that an op which carries cuts
};

}  // namespace

std::string_view to_string(State state) {
  constexpr std::array<std::string_view, 3> kNames = {"whole", "split", "partial"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view to_string(StopCause cause) {
  constexpr std::array<std::string_view, 5> kNames = {"mixes", "unknown", "conflict", "misplaced",
                                                      "sum"};
  return kNames[static_cast<std::size_t>(cause)];
}

Reach follow(const Graph& graph, std::span<const Seed> seeds, std::span<const OpId> region) {
  return Follower(graph, region).follow(seeds);
}

}  // namespace lowtide::dimensions
