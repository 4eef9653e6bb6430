// Doubly linked lists of events by tensor, and the bytes in use by position.
#include "lowtide/solve/kumar/common/editable_sequence.h"

#include <algorithm>
#include <utility>

#include "lowtide/base/error.h"
#include "lowtide/solve/sequence/in_place.h"

namespace lowtide::solve::kumar {

EditableSequence::EditableSequence(const Problem& problem, std::span<const OpId> sequence)
    : graph_(&problem.graph),
      ops_(std::vector<OpId>(sequence.begin(), sequence.end())),
      present_(sequence.size(), 1),
      held_(problem.graph.op_count(), problem.order == Order::given) {
  for (std::size_t i = 0; i < graph_->op_count(); ++i) {
    const OpId op(i);
    for (OpId before : graph_->after(op)) held_[before] = 1;
    for (TensorId made : graph_->outputs(op)) tensors_.push(made);
    made_.push_back(graph_->outputs(op).size());
    for (TensorId input : graph_->inputs(op))
      if (graph_->freeable(input)) tensors_.push(input);
    tensors_.end_row();
  }
  const Item end(size());
  first_.assign(graph_->tensor_count(), Event());
  first_of_.assign(graph_->op_count(), Item());
  std::int64_t fixed = graph_->resident().count();
  IdVector<TensorId, Event> last(graph_->tensor_count());
  for (const TensorId id : last.ids()) {
    if (!graph_->freeable(id)) fixed += graph_->bytes(id).count();
    if (graph_->is_input(id) && graph_->freeable(id)) link(id, Item(0), true, last);
  }
  heads_ = Event(item_of_.size());
  IdVector<OpId, Item> latest(graph_->op_count());
  for (const Item item : ops_.ids()) {
    first_event_.push_back(Event(item_of_.size()));
    const OpId op = ops_[item];
    const auto tensors = tensors_[op];
    for (std::size_t k = 0; k < tensors.size(); ++k) link(tensors[k], item, k < made(op), last);
    before_.push_back(std::exchange(latest[op], item));
    after_.push_back(Item());
    (before_.back().valid() ? after_[before_.back()] : first_of_[op]) = item;
    duration_ += graph_->time(op);
  }
  for (TensorId output : graph_->outputs())
    if (graph_->freeable(output)) link(output, end, false, last);

  all_previous_ = previous_;
  all_before_ = before_;

  std::vector<std::int64_t> change(size() + 2, 0);
  change[0] = fixed;
  const auto hold = [&](Event event, std::int64_t bytes) {
    Event stop = event;
    for (Event next = next_[stop]; next.valid() && !is_make(next); next = next_[stop]) stop = next;
    change[item_of_[event].index()] += bytes;
    change[item_of_[stop].index() + 1] -= bytes;
  };
  for (const TensorId id : last.ids()) {
    // The list's head, from its end.
    Event event = last[id];
    while (event.valid()) {
      if (is_make(event)) hold(event, graph_->bytes(id).count());
      event = previous_[event];
    }
  }
  for (std::size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  change.resize(size());
  for (std::size_t i = 0; i < size(); ++i) change[i] += graph_->workspace(ops_[Item(i)]).count();
  bytes_ = RangeMax(change);
  if (!graph_->has_overwrites()) return;
  overwritten_.assign(size(), Bytes(0));
  for (const Item item : ops_.ids()) refresh_overwritten(item);
}

void EditableSequence::refresh_overwritten(Item item) {
  const OpId op = this->op(item);
  if (graph_->overwrites(op).empty()) return;
  Bytes now;
  if (present(item))
    now = overwritten_bytes(*graph_, op, [&](TensorId id) {
      const auto tensors = tensors_[op];
      std::size_t k = made(op);
      while (tensors[k] != id) ++k;
      const Event next = next_[event(item, k)];
      return !next.valid() || is_make(next);
    });
  const Bytes before = std::exchange(overwritten_[item], now);
  if (now != before) bytes_.add(item.index(), item.index() + 1, (before - now).count());
}

void EditableSequence::refresh_around(Item item) {
  if (overwritten_.size() == 0) return;
  refresh_overwritten(item);
  for (std::size_t k = 0; k < tensors_[op(item)].size(); ++k) {
    const Event before = previous_[event(item, k)];
    if (before.valid() && before >= heads_) refresh_overwritten(item_of_[before]);
  }
}

void EditableSequence::link(TensorId tensor, Item item, bool makes,
                            IdVector<TensorId, Event>& last) {
  const Event event(item_of_.size());
  previous_.push_back(last[tensor]);
  next_.push_back(Event());
  (previous_.back().valid() ? next_[previous_.back()] : first_[tensor]) = event;
  item_of_.push_back(item);
  is_make_.push_back(makes ? 1 : 0);
  last[tensor] = event;
}

std::vector<OpId> EditableSequence::sequence() const {
  std::vector<OpId> result;
  for (const Item item : ops_.ids())
    if (present(item)) result.push_back(ops_[item]);
  return result;
}

bool EditableSequence::unread(Item item) const {
  for (std::size_t k = 0; k < made(op(item)); ++k)
    if (serves(event(item, k))) return false;
  return true;
}

bool EditableSequence::droppable(Item item) const {
  if (before_[item].valid()) return true;
  return after_[item].valid() && held_[op(item)] == 0;
}

bool EditableSequence::removable(Item item) const {
  return present(item) && (before_[item].valid() || (droppable(item) && unread(item)));
}

EditableSequence::Saving EditableSequence::saving(Item item, std::span<const double> prices) const {
  Saving result;
  const OpId op = this->op(item);
  const auto tensors = tensors_[op];
  for (std::size_t k = 0; k < made(op); ++k) {
    const Event event = this->event(item, k);
    const Event before = previous_[event];
    const auto bytes = static_cast<double>(graph_->bytes(tensors[k]).count());
    if (serves(event) && before.valid())
      result.price += bytes * (prices[item.index()] - prices[item_of_[before].index() + 1]);
    else
      result.price -= bytes * (prices[item.index() + 1] - prices[item.index()]);
  }
  collect(item, 0, prices, result);
  return result;
}

EditableSequence::Saving EditableSequence::holding(Item item,
                                                   std::span<const double> prices) const {
  Saving result;
  if (present(item)) return result;
  const OpId op = this->op(item);
  const auto tensors = tensors_[op];
  result.time = graph_->time(op).count();
  for (std::size_t k = 0; k < made(op); ++k) {
    const Event before = present_before(this->event(item, k));
    const Event next = before.valid() ? next_[before] : Event();
    if (!next.valid() || is_make(next)) continue;
    result.price += static_cast<double>(graph_->bytes(tensors[k]).count()) *
                    (prices[item.index()] - prices[item_of_[before].index() + 1]);
  }
  return result;
}

// Adds the item's time, then that of items that only it still reads.
void EditableSequence::collect(Item item, int generation, std::span<const double> prices,
                               Saving& saving) const {
  const OpId op = this->op(item);
  saving.time += graph_->time(op).count();
  const auto tensors = tensors_[op];
  for (std::size_t k = made(op); k < tensors.size(); ++k) {
    const Event event = this->event(item, k);
    const Event before = previous_[event], next = next_[event];
    if (next.valid() && !is_make(next)) continue;
    const Item holder = item_of_[before];
    const auto bytes = static_cast<double>(graph_->bytes(tensors[k]).count());
    saving.price -= bytes * (prices[item.index() + 1] - prices[holder.index() + 1]);
    if (!is_make(before) || generation >= kCascade || graph_->is_input(tensors[k])) continue;
    if (!droppable(holder)) continue;
    bool others = false;
    for (std::size_t m = 0; m < made(this->op(holder)); ++m)
      others |= this->event(holder, m) != before && serves(this->event(holder, m));
    if (!others) collect(holder, generation + 1, prices, saving);
  }
}

// Changes the bytes as if the event were removed (sign -1) from or inserted (+1) into its list,
// which must lack it.
void EditableSequence::change(Item item, Event event, std::int64_t bytes, int sign) {
  const Event before = previous_[event], next = next_[event];
  const bool used = next.valid() && !is_make(next);
  const std::size_t position = item.index();
  ++work_;
  if (is_make(event)) {
    if (used)
      bytes_.add(item_of_[before].index() + 1, position, -sign * bytes);
    else
      bytes_.add(position, position + 1, sign * bytes);
  } else if (!used) {
    bytes_.add(item_of_[before].index() + 1, position + 1, sign * bytes);
  }
}

void EditableSequence::take_out(Item item) {
  const OpId op = this->op(item);
  const auto tensors = tensors_[op];
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const Event event = this->event(item, k);
    change(item, event, graph_->bytes(tensors[k]).count(), -1);
    const Event before = previous_[event], next = next_[event];
    if (before.valid())
      next_[before] = next;
    else
      first_[tensors[k]] = next;
    if (next.valid()) previous_[next] = before;
  }
  bytes_.add(item.index(), item.index() + 1, -graph_->workspace(op).count());
  const Item before = before_[item], after = after_[item];
  (before.valid() ? after_[before] : first_of_[op]) = after;
  if (after.valid()) before_[after] = before;
  present_[item] = 0;
  duration_ -= graph_->time(op);
  refresh_around(item);
}

EditableSequence::Event EditableSequence::present_before(Event event) const {
  Event before = all_previous_[event];
  while (before.valid() && item_of_[before].index() < size() && before >= heads_ &&
         !present(item_of_[before]))
    before = all_previous_[before];
  return before;
}

void EditableSequence::put_back(Item item) {
  const OpId op = this->op(item);
  const auto tensors = tensors_[op];
  for (std::size_t k = tensors.size(); k-- > 0;) {
    const Event event = this->event(item, k);
    const Event before = present_before(event);
    const Event next = before.valid() ? next_[before] : first_[tensors[k]];
    previous_[event] = before;
    next_[event] = next;
    if (before.valid())
      next_[before] = event;
    else
      first_[tensors[k]] = event;
    if (next.valid()) previous_[next] = event;
    change(item, event, graph_->bytes(tensors[k]).count(), 1);
  }
  bytes_.add(item.index(), item.index() + 1, graph_->workspace(op).count());
  Item before = all_before_[item];
  while (before.valid() && !present(before)) before = all_before_[before];
  Item& slot = before.valid() ? after_[before] : first_of_[op];
  const Item after = slot;
  slot = item;
  before_[item] = before;
  after_[item] = after;
  if (after.valid()) before_[after] = item;
  present_[item] = 1;
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
    log_.push_back({next, false});
    const OpId op = this->op(next);
    const auto tensors = tensors_[op];
    for (std::size_t k = made(op); k < tensors.size(); ++k) {
      const Event event = this->event(next, k);
      // The latest computation of the input's producer before this item, present or not.
      Event make = all_previous_[event];
      while (make.valid() && !is_make(make)) make = all_previous_[make];
      if (!make.valid() || graph_->is_input(tensors[k])) continue;
      const Item maker = item_of_[make];
      if (present(maker)) continue;
      const Event before = previous_[event], after = next_[event];
      // A tensor that is held over this position anyway costs no more.
      if (before.valid() && after.valid() && !is_make(after)) continue;
      const double price = !before.valid()
                               ? 0
                               : static_cast<double>(graph_->bytes(tensors[k]).count()) *
                                     (prices[maker.index()] - prices[item_of_[before].index() + 1]);
      if (!before.valid() || rate * price > static_cast<double>(graph_->time(ops_[maker]).count()))
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
    const auto tensors = tensors_[op];
    take_out(next);
    log_.push_back({next, true});
    for (std::size_t k = made(op); k < tensors.size(); ++k) {
      const Event before = previous_[this->event(next, k)];
      if (is_make(before) && !graph_->is_input(tensors[k]) && !serves(before))
        waiting_.push_back(item_of_[before]);
    }
  }
}

void EditableSequence::restore(std::size_t log_size) {
  while (log_.size() > log_size) {
    if (log_.back().taken_out)
      put_back(log_.back().item);
    else
      take_out(log_.back().item);
    log_.pop_back();
  }
}

std::vector<std::int64_t> EditableSequence::without_repetitions() const {
  std::vector<std::int64_t> change(size() + 1, 0);
  IdVector<TensorId, Item> made(graph_->tensor_count()), last(graph_->tensor_count());
  IdVector<OpId, std::uint8_t> seen(graph_->op_count(), 0);
  change[0] = graph_->resident().count();
  for (const TensorId id : made.ids()) {
    if (graph_->is_input(id)) made[id] = last[id] = Item(0);
    if (!graph_->freeable(id) || graph_->is_output(id)) last[id] = Item(size() - 1);
  }
  for (const Item item : ops_.ids()) {
    if (std::exchange(seen[ops_[item]], 1) != 0) continue;
    for (TensorId input : graph_->inputs(ops_[item])) last[input] = std::max(last[input], item);
    for (TensorId output : graph_->outputs(ops_[item])) {
      made[output] = item;
      last[output] = std::max(last[output], item);
    }
  }
  for (const TensorId id : made.ids()) {
    if (!made[id].valid()) continue;
    change[made[id].index()] += graph_->bytes(id).count();
    change[last[id].index() + 1] -= graph_->bytes(id).count();
  }
  for (std::size_t i = 1; i < size(); ++i) change[i] += change[i - 1];
  change.resize(size());
  return change;
}

}  // namespace lowtide::solve::kumar
