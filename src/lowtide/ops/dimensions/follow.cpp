// Following axes through a graph.
//
// Two passes. The first goes from the seeds to producers and consumers, first in first out: an op
// next to a split tensor takes the letter that names the dimensions along which it sees the axis
// there, and that letter splits its other operands and results. Each op decides once. Letters that
// sum wait until nothing else is left to follow, because what they say of operands that nobody has
// reached yet is the weakest link: in Z' S the rows of Z say nothing of how S was meant. The second
// pass (settle.cpp) goes through the ops in their order and takes back those of which an operand
// that they take whole is made by parts; there sums that are still to be made go through ops that
// are linear.
//
// That an op was taken back leaves what was reached through it: a tensor that is not made by parts
// can be read in slices, whatever made it, so every op stays right by itself.
//
// Loses: an op decides by the first axis that comes to it. Where it sees several at once and only
// one of them can be followed (attention over positions, of its own queries and keys), another
// order might have kept more.
#include "lowtide/ops/dimensions/follow.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/ops/dimensions/following.h"
#include "lowtide/ops/dimensions/rule.h"
#include "lowtide/ops/dimensions/words.h"

namespace lowtide::dimensions {

namespace {

bool names(const std::vector<Along>& list, std::size_t item) {
  return std::ranges::find(list, item, &Along::item) != list.end();
}

// The positions at which an op sees the axis, before it is decided whether the op carries it.
struct Seen {
  std::vector<std::pair<std::size_t, Position>> operands, results;
  // Operands of split tensors, of other slices than these have.
  std::vector<std::size_t> elsewhere;

  bool empty() const { return operands.empty() && results.empty(); }
};

class Follower : private Following {
 public:
  Follower(const Graph& graph, std::span<const OpId> region) : Following(graph, region) {}

  Following follow(std::span<const Seed> seeds) {
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
    return std::move(*this);
  }

 private:
  void plant(const Seed& seed) {
    const Axis axis = axis_of(graph_, seed);
    TensorState& now = reach_.tensors[seed.tensor.index()];
    if (now.state == State::split && now.axis != axis)
      throw InputError(graph_.label(seed.tensor), "is cut along two different axes");
    if (now.state == State::split) return;
    now = {State::split, axis};
    tensors_.push_back(seed.tensor);
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

  // An input of the graph may be read whole by one op and in slices by another.
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
    const auto& first = result ? seen.results.front() : seen.operands.front();
    const std::size_t item = first.first;
    const Position& at = first.second;
    const Operand& where = result ? op.results[item] : op.operands[item];
    const auto has = [&](const Letter& letter) {
      const auto& list = result ? letter.results : letter.operands;
      return std::ranges::any_of(
          list, [&](const Along& along) { return along.item == item && along.dim == at.dim; });
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

  // An op that carries the axis along a letter, before it is known whether it can.
  struct Attempt {
    OpId op;
    const Letter& letter;
    const Seen& seen;
    const Position& as;
    Carry carry;
    std::vector<std::pair<TensorId, TensorState>> reached;
  };

  // The position of the axis in an operand or result that the letter names.
  static Position see(Attempt& attempt, const Along& along, const Operand& operand, View& view) {
    Position at{along.dim, attempt.as.inner, attempt.as.extent};
    if (attempt.letter.crops) {
      at.extent = operand.shape[along.dim] / attempt.as.inner;
      attempt.carry.extent = std::max(attempt.carry.extent, at.extent);
    }
    view = {.state = State::split, .position = at};
    return at;
  }

  // False if the op has to stop.
  bool split_operand(Attempt& attempt, const Along& along, const Operand& operand, View& view) {
    const Position at = see(attempt, along, operand, view);
    const TensorState now = state(operand);
    if (now.state == State::split && sees(operand, now.axis, at, false)) return true;
    const auto longer = cropped(operand, at);
    if (longer && now.state == State::whole && !outside(operand)) {
      attempt.reached.emplace_back(operand.tensor, TensorState{State::split, *longer});
      return true;
    }
    const auto put = place(operand, at, graph_.bytes(operand.tensor));
    const auto* misfit = std::get_if<Misfit>(&put);
    const bool elsewhere = contains(attempt.seen.elsewhere, along.item);
    const bool may_read = elsewhere || now.state == State::whole;
    if (may_read && (elsewhere || longer || misfit != nullptr) && in_whole(operand, at, {0, 1})) {
      view.from_whole = true;
      return true;
    }
    if (misfit != nullptr) return misplaced(attempt, operand, *misfit);
    const auto& axis = std::get<std::optional<Axis>>(put);
    if (!axis) {  // repeats itself along it
      view.state = State::whole;
      return true;
    }
    if (longer || now.state != State::whole) return conflicts(attempt, operand);
    attempt.reached.emplace_back(operand.tensor, TensorState{State::split, *axis});
    return true;
  }
  bool split_result(Attempt& attempt, const Along& along, const Operand& result, View& view) {
    const Position at = see(attempt, along, result, view);
    const TensorState now = state(result);
    if (now.state == State::split && sees(result, now.axis, at, true)) return true;
    const auto put = place(result, at, graph_.bytes(result.tensor));
    if (const auto* misfit = std::get_if<Misfit>(&put)) return misplaced(attempt, result, *misfit);
    const auto& axis = std::get<std::optional<Axis>>(put);
    if (!axis || now.state != State::whole) return conflicts(attempt, result);
    attempt.reached.emplace_back(result.tensor, TensorState{State::split, *axis});
    return true;
  }
  // A result that the letter does not name is made before the parts, or is a sum over them.
  bool sum(Attempt& attempt, const Operand& result, Unnamed unnamed, View& view) {
    view.before = unnamed == Unnamed::before;
    if (unnamed != Unnamed::sum) return true;
    view.state = State::partial;
    if (state(result).state != State::whole) {
      stop(attempt.op, StopCause::conflict, result.tensor,
           "would make a sum over the axis in " + name_of(result) +
               ", of which other ops read slices");
      return false;
    }
    attempt.reached.emplace_back(result.tensor, TensorState{State::partial, {}});
    return true;
  }
  // One tensor may stand there twice, in two ways.
  bool is_one_way(const Attempt& attempt) {
    const auto& reached = attempt.reached;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (reached[i].first == reached[k].first && reached[i].second != reached[k].second) {
          stop(attempt.op, StopCause::conflict, reached[i].first,
               "would cut one tensor along two axes");
          return false;
        }
    return true;
  }

  bool misplaced(const Attempt& attempt, const Operand& operand, const Misfit& misfit) {
    stop(attempt.op, StopCause::misplaced, operand.tensor, misfit.reason);
    return false;
  }
  bool conflicts(const Attempt& attempt, const Operand& operand) {
    stop(attempt.op, StopCause::conflict, operand.tensor,
         "would cut " + name_of(operand) + " along another axis than other ops do");
    return false;
  }

  // All that the letter splits, if it can split all.
  void apply(OpId id, const Rule& rule, const Letter& letter, const Seen& seen,
             const Position& as) {
    const Op& op = graph_.op(id);
    Attempt attempt{.op = id,
                    .letter = letter,
                    .seen = seen,
                    .as = as,
                    .carry = {as.extent, std::vector<View>(op.operands.size()),
                              std::vector<View>(op.results.size()), letter.weight, rule.drawn},
                    .reached = {}};
    Carry& carry = attempt.carry;
    for (const Along& along : letter.operands)
      if (!split_operand(attempt, along, op.operands[along.item], carry.operands[along.item]))
        return;
    for (const Along& along : letter.results)
      if (!split_result(attempt, along, op.results[along.item], carry.results[along.item])) return;
    for (std::size_t r = 0; r < op.results.size(); ++r)
      if (!names(letter.results, r) &&
          !sum(attempt, op.results[r], letter.unnamed[r], carry.results[r]))
        return;
    if (!is_one_way(attempt)) return;
    for (const auto& [tensor, now] : attempt.reached) {
      TensorState& then = reach_.tensors[tensor.index()];
      if (then.state != State::whole) continue;
      then = now;
      if (now.state == State::split) tensors_.push_back(tensor);
    }
    unite(id, carry);
    reach_.carries[id.index()] = std::move(carry);
  }

  // Tensors that one op sees in slices are divided at the same places.
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

  std::deque<TensorId> tensors_;  // split, and not yet followed
  std::deque<OpId> waiting_;      // would sum
};

}  // namespace

Reach follow(const Graph& graph, std::span<const Seed> seeds, std::span<const OpId> region) {
  return settle(Follower(graph, region).follow(seeds));
}

}  // namespace lowtide::dimensions
