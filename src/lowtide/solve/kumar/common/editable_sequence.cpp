// Lists of makes and uses, and what they hold where.
#include "lowtide/solve/kumar/common/editable_sequence.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/solve/sequence/in_place.h"

namespace lowtide::solve::kumar {

EditableSequence::EditableSequence(const Problem& problem, std::span<const OpId> sequence)
    : graph_(&problem.graph),
      ops_(sequence.begin(), sequence.end()),
      present_(sequence.size(), 1),
      held_(problem.graph.op_count(), problem.order == Order::given) {
  for (std::size_t i = 0; i < graph_->op_count(); ++i) {
    const OpId op(i);
    for (OpId before : graph_->after(op)) held_[before.index()] = 1;
    for (TensorId made : graph_->outputs(op)) tensors_.push(made);
    made_.push_back(graph_->outputs(op).size());
    for (TensorId input : graph_->inputs(op))
      if (graph_->freeable(input)) tensors_.push(input);
    tensors_.end_row();
  }
  const auto end = static_cast<Item>(size());
  first_.assign(graph_->tensor_count(), kNone);
  first_of_.assign(graph_->op_count(), kNone);
  std::int64_t fixed = graph_->resident().count();
  std::vector<Event> last(graph_->tensor_count(), kNone);
  for (std::size_t i = 0; i < graph_->tensor_count(); ++i) {
    const TensorId id(i);
    if (!graph_->freeable(id)) fixed += graph_->bytes(id).count();
    if (graph_->is_input(id) && graph_->freeable(id))
      link(static_cast<Event>(item_of_.size()), id, 0, true, last);
  }
  heads_ = static_cast<Event>(item_of_.size());
  std::vector<Item> latest(graph_->op_count(), kNone);
  for (Item item = 0; item < end; ++item) {
    first_event_.push_back(static_cast<Event>(item_of_.size()));
    const OpId op = ops_[at(item)];
    const auto tensors = tensors_[op.index()];
    for (std::size_t k = 0; k < tensors.size(); ++k)
      link(static_cast<Event>(item_of_.size()), tensors[k], item, k < made(op), last);
    before_.push_back(std::exchange(latest[op.index()], item));
    after_.push_back(kNone);
    (before_.back() != kNone ? after_[at(before_.back())] : first_of_[op.index()]) = item;
    duration_ += graph_->time(op);
  }
  for (TensorId output : graph_->outputs())
    if (graph_->freeable(output))
      link(static_cast<Event>(item_of_.size()), output, end, false, last);

  all_previous_ = previous_;
  all_before_ = before_;

  std::vector<std::int64_t> change(size() + 2, 0);
  change[0] = fixed;
  const auto hold = [&](Event event, std::int64_t bytes) {
    Event stop = event;
    for (Event next = next_[at(stop)]; next != kNone && !is_make(next); next = next_[at(stop)])
      stop = next;
    change[at(item_of_[at(event)])] += bytes;
    change[at(std::min(item_of_[at(stop)] + 1, end + 1))] -= bytes;
  };
  for (std::size_t i = 0; i < graph_->tensor_count(); ++i) {
    const TensorId id(i);
    // The list's head, from its end.
    Event event = last[i];
    while (event != kNone) {
      if (is_make(event)) hold(event, graph_->bytes(id).count());
      event = previous_[at(event)];
    }
  }
  for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  change.resize(size());
  for (std::size_t i = 0; i < size(); ++i) change[i] += graph_->workspace(ops_[i]).count();
  bytes_ = RangeMax(change);
  if (!graph_->has_overwrites()) return;
  overwritten_.assign(size(), Bytes(0));
  for (Item item = 0; item < end; ++item) refresh_overwritten(item);
}

void EditableSequence::refresh_overwritten(Item item) {
  const OpId op = this->op(item);
  if (graph_->overwrites(op).empty()) return;
  const auto tensors = tensors_[op.index()];
  const Bytes now = !present(item) ? Bytes(0) : overwritten_bytes(*graph_, op, [&](TensorId id) {
    const auto k = std::ranges::find(tensors.subspan(made(op)), id) - tensors.begin();
    const Event next = next_[at(first_event(item) + static_cast<Event>(k))];
    return next == kNone || is_make(next);
  });
  const Bytes before = std::exchange(overwritten_[at(item)], now);
  if (now != before) bytes_.add(at(item), at(item) + 1, (before - now).count());
}

void EditableSequence::refresh_around(Item item) {
  if (overwritten_.empty()) return;
  refresh_overwritten(item);
  for (std::size_t k = 0; k < tensors_[op(item).index()].size(); ++k) {
    const Event before = previous_[at(first_event(item) + static_cast<Event>(k))];
    if (before >= heads_) refresh_overwritten(item_of_[at(before)]);
  }
}

void EditableSequence::link(Event event, TensorId tensor, Item item, bool makes,
                            std::vector<Event>& last) {
  previous_.push_back(last[tensor.index()]);
  next_.push_back(kNone);
  (previous_.back() != kNone ? next_[at(previous_.back())] : first_[tensor.index()]) = event;
  item_of_.push_back(item);
  is_make_.push_back(makes ? 1 : 0);
  last[tensor.index()] = event;
}

std::vector<OpId> EditableSequence::sequence() const {
  std::vector<OpId> result;
  for (std::size_t i = 0; i < size(); ++i)
    if (present_[i] != 0) result.push_back(ops_[i]);
  return result;
}

bool EditableSequence::unread(Item item) const {
  const Event first = first_event(item);
  for (std::size_t k = 0; k < made(op(item)); ++k)
    if (serves(first + static_cast<Event>(k))) return false;
  return true;
}

bool EditableSequence::droppable(Item item) const {
  if (before_[at(item)] != kNone) return true;
  return after_[at(item)] != kNone && held_[op(item).index()] == 0;
}

bool EditableSequence::removable(Item item) const {
  return present(item) && (before_[at(item)] != kNone || (droppable(item) && unread(item)));
}

EditableSequence::Saving EditableSequence::saving(Item item, std::span<const double> prices) const {
  Saving result;
  const OpId op = this->op(item);
  const auto tensors = tensors_[op.index()];
  for (std::size_t k = 0; k < made(op); ++k) {
    const Event event = first_event(item) + static_cast<Event>(k);
    const Event before = previous_[at(event)];
    const auto bytes = static_cast<double>(graph_->bytes(tensors[k]).count());
    if (serves(event) && before != kNone)
      result.price += bytes * (prices[at(item)] - prices[at(item_of_[at(before)]) + 1]);
    else
      result.price -= bytes * (prices[at(item) + 1] - prices[at(item)]);
  }
  collect(item, 0, prices, result);
  return result;
}

EditableSequence::Saving EditableSequence::holding(Item item,
                                                   std::span<const double> prices) const {
  Saving result;
  if (present(item)) return result;
  const OpId op = this->op(item);
  const auto tensors = tensors_[op.index()];
  result.time = graph_->time(op).count();
  for (std::size_t k = 0; k < made(op); ++k) {
    const Event before = present_before(first_event(item) + static_cast<Event>(k));
    const Event next = before == kNone ? kNone : next_[at(before)];
    if (next == kNone || is_make(next)) continue;
    result.price += static_cast<double>(graph_->bytes(tensors[k]).count()) *
                    (prices[at(item)] - prices[at(item_of_[at(before)]) + 1]);
  }
  return result;
}

// What goes with the item: its time, and what only it still reads.
void EditableSequence::collect(Item item, int generation, std::span<const double> prices,
                               Saving& saving) const {
  const OpId op = this->op(item);
  saving.time += graph_->time(op).count();
  const auto tensors = tensors_[op.index()];
  for (std::size_t k = made(op); k < tensors.size(); ++k) {
    const Event event = first_event(item) + static_cast<Event>(k);
    const Event before = previous_[at(event)], next = next_[at(event)];
    if (next != kNone && !is_make(next)) continue;
    const Item holder = item_of_[at(before)];
    const auto bytes = static_cast<double>(graph_->bytes(tensors[k]).count());
    saving.price -= bytes * (prices[at(item) + 1] - prices[at(holder) + 1]);
    if (!is_make(before) || generation >= kCascade || graph_->is_input(tensors[k])) continue;
    if (!droppable(holder)) continue;
    bool others = false;
    const Event first = first_event(holder);
    for (std::size_t m = 0; m < made(this->op(holder)); ++m)
      others |= first + static_cast<Event>(m) != before && serves(first + static_cast<Event>(m));
    if (!others) collect(holder, generation + 1, prices, saving);
  }
}

// What the bytes change by when the event is taken out (sign -1) or put back (+1), seen from a list
// that lacks it.
void EditableSequence::change(Item item, Event event, std::int64_t bytes, int sign) {
  const Event before = previous_[at(event)], next = next_[at(event)];
  const bool used = next != kNone && !is_make(next);
  const auto position = at(item);
  ++work_;
  if (is_make(event)) {
    if (used)
      bytes_.add(at(item_of_[at(before)]) + 1, position, -sign * bytes);
    else
      bytes_.add(position, position + 1, sign * bytes);
  } else if (!used) {
    bytes_.add(at(item_of_[at(before)]) + 1, position + 1, sign * bytes);
  }
}

void EditableSequence::take_out(Item item) {
  const OpId op = this->op(item);
  const auto tensors = tensors_[op.index()];
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Event event = first_event(item) + static_cast<Event>(k);
    change(item, event, graph_->bytes(tensors[k]).count(), -1);
    const Event before = previous_[at(event)], next = next_[at(event)];
    if (before != kNone)
      next_[at(before)] = next;
    else
      first_[tensors[k].index()] = next;
    if (next != kNone) previous_[at(next)] = before;
  }
  bytes_.add(at(item), at(item) + 1, -graph_->workspace(op).count());
  const Item before = before_[at(item)], after = after_[at(item)];
  (before != kNone ? after_[at(before)] : first_of_[op.index()]) = after;
  if (after != kNone) before_[at(after)] = before;
  present_[at(item)] = 0;
  duration_ -= graph_->time(op);
  refresh_around(item);
}

EditableSequence::Event EditableSequence::present_before(Event event) const {
  Event before = all_previous_[at(event)];
  while (before != kNone && item_of_[at(before)] < static_cast<Item>(size()) && before >= heads_ &&
         !present(item_of_[at(before)]))
    before = all_previous_[at(before)];
  return before;
}

void EditableSequence::put_back(Item item) {
  const OpId op = this->op(item);
  const auto tensors = tensors_[op.index()];
  for (std::size_t k = tensors.size(); k-- > 0;) {
    const Event event = first_event(item) + static_cast<Event>(k);
    const Event before = present_before(event);
    const Event next = before != kNone ? next_[at(before)] : first_[tensors[k].index()];
    previous_[at(event)] = before;
    next_[at(event)] = next;
    if (before != kNone)
      next_[at(before)] = event;
    else
      first_[tensors[k].index()] = event;
    if (next != kNone) previous_[at(next)] = event;
    change(item, event, graph_->bytes(tensors[k]).count(), 1);
  }
  bytes_.add(at(item), at(item) + 1, graph_->workspace(op).count());
  Item before = all_before_[at(item)];
  while (before != kNone && !present(before)) before = all_before_[at(before)];
  Item& slot = before != kNone ? after_[at(before)] : first_of_[op.index()];
  const Item after = slot;
  slot = item;
  before_[at(item)] = before;
  after_[at(item)] = after;
  if (after != kNone) before_[at(after)] = item;
  present_[at(item)] = 1;
  duration_ += graph_->time(op);
  refresh_around(item);
}

void EditableSequence::reinstate(Item item, std::span<const double> prices, double rate) {
  waiting_.assign(1, item);
  while (!waiting_.empty()) {
    const Item next = waiting_.back();
    waiting_.pop_back();
    if (present(next)) continue;
    put_back(next);
    log_.push_back(-1 - next);
    const OpId op = this->op(next);
    const auto tensors = tensors_[op.index()];
    for (std::size_t k = made(op); k < tensors.size(); ++k) {
      const Event event = first_event(next) + static_cast<Event>(k);
      // Its maker's latest computation before, present or not.
      Event make = all_previous_[at(event)];
      while (make != kNone && !is_make(make)) make = all_previous_[at(make)];
      if (make == kNone || graph_->is_input(tensors[k])) continue;
      const Item maker = item_of_[at(make)];
      if (present(maker)) continue;
      const Event before = previous_[at(event)], after = next_[at(event)];
      // What is held over it in any case costs nothing more.
      if (before != kNone && after != kNone && !is_make(after)) continue;
      const double price = before == kNone
                               ? 0
                               : static_cast<double>(graph_->bytes(tensors[k]).count()) *
                                     (prices[at(maker)] - prices[at(item_of_[at(before)]) + 1]);
      if (before == kNone ||
          rate * price > static_cast<double>(graph_->time(ops_[at(maker)]).count()))
        waiting_.push_back(maker);
    }
  }
}

void EditableSequence::remove(Item item) {
  waiting_.assign(1, item);
  while (!waiting_.empty()) {
    const Item next = waiting_.back();
    waiting_.pop_back();
    if (!present(next) || !removable(next)) continue;
    if (next != item && !unread(next)) continue;
    const OpId op = this->op(next);
    const auto tensors = tensors_[op.index()];
    take_out(next);
    log_.push_back(next);
    for (std::size_t k = made(op); k < tensors.size(); ++k) {
      const Event before = previous_[at(first_event(next) + static_cast<Event>(k))];
      if (is_make(before) && !graph_->is_input(tensors[k]) && !serves(before))
        waiting_.push_back(item_of_[at(before)]);
    }
  }
}

void EditableSequence::restore(std::size_t log_size) {
  while (log_.size() > log_size) {
    if (log_.back() >= 0)
      put_back(log_.back());
    else
      take_out(-1 - log_.back());
    log_.pop_back();
  }
}

std::vector<std::int64_t> EditableSequence::without_repetitions() const {
  std::vector<std::int64_t> change(size() + 1, 0);
  std::vector<Item> made(graph_->tensor_count(), kNone), last(graph_->tensor_count(), kNone);
  std::vector<std::uint8_t> seen(graph_->op_count(), 0);
  change[0] = graph_->resident().count();
  for (std::size_t i = 0; i < graph_->tensor_count(); ++i) {
    const TensorId id(i);
    if (graph_->is_input(id)) made[i] = last[i] = 0;
    if (!graph_->freeable(id) || graph_->is_output(id)) last[i] = static_cast<Item>(size()) - 1;
  }
  for (std::size_t j = 0; j < size(); ++j) {
    if (std::exchange(seen[ops_[j].index()], 1) != 0) continue;
    for (TensorId input : graph_->inputs(ops_[j]))
      last[input.index()] = std::max(last[input.index()], static_cast<Item>(j));
    for (TensorId output : graph_->outputs(ops_[j])) {
      made[output.index()] = static_cast<Item>(j);
      last[output.index()] = std::max(last[output.index()], static_cast<Item>(j));
    }
  }
  for (std::size_t i = 0; i < graph_->tensor_count(); ++i) {
    if (made[i] == kNone) continue;
    change[at(made[i])] += graph_->bytes(TensorId(i)).count();
    change[at(last[i]) + 1] -= graph_->bytes(TensorId(i)).count();
  }
  for (std::size_t i = 1; i < size(); ++i) change[i] += change[i - 1];
  change.resize(size());
  return change;
}

}  // namespace lowtide::solve::kumar
