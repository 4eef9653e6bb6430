// Look-ups along chains of items and lists of readers.
#include "lowtide/solve/local/common/state/items.h"

namespace lowtide::solve::local {

bool Items::unused(Item item) const {
  for (Value value : network_.outputs(node(item)))
    if (end(item, value) != item) return false;
  return true;
}

Item Items::later_fetch(Value value, Slot slot, Item computed) const {
  Item fetch = last_of(network_.fetch(value));
  while (fetch != kNone && slot_[fetch] >= slot) fetch = previous_[fetch];
  return fetch != kNone && slot_[fetch] > slot_[computed] ? fetch : computed;
}

double Items::overwritten(Item item) const {
  double sum = 0;
  Value served;
  for (const auto& [input, output] : network_.overwrites(node(item))) {
    if (output == served) continue;
    const Item server = this->server(input, slot(item));
    if (end(server, input) != item) continue;
    sum += network_.bytes_of(output);
    served = output;
  }
  return sum;
}

bool Items::overwrites(Item item, Value value) const {
  Value served;
  for (const auto& [input, output] : network_.overwrites(node(item))) {
    if (output == served || end(server(input, slot(item)), input) != item) continue;
    if (input == value) return true;
    served = output;
  }
  return false;
}

Item Items::item_after(Slot slot) const {
  const std::size_t count = slot_count();
  for (slot = slot + 1; slot.index() < count; slot = slot + 1)
    if (item_at(slot).valid()) return item_at(slot);
  return kNone;
}

std::pair<Item, Item> Items::readers_around(Value value, Slot slot, Slot begin, Slot end) const {
  Item last = kNone, next = kNone;
  Slot last_slot = begin, next_slot = end;
  const auto users = network_.users(value);
  work_ += static_cast<std::int64_t>(users.size() / 8);
  for (Node user : users)
    for (Item item = last_of(user); item != kNone; item = previous(item)) {
      const Slot here = this->slot(item);
      if (here > slot) {
        if (here >= next_slot) continue;
        next = item;
        next_slot = here;
        continue;
      }
      if (here > last_slot) {
        last = item;
        last_slot = here;
      }
      break;
    }
  return {last, next};
}

Item Items::first_hold(Value value, Slot slot, Slot end) const {
  Item first = kNone;
  if (!network_.transfers) return first;
  for (Item item = last_of(network_.hold(value)); item != kNone; item = previous(item)) {
    if (this->slot(item) <= slot) break;
    if (this->slot(item) < end) first = item;
  }
  return first;
}

Item Items::next_maker(Value value, Slot slot) const {
  Item next = kNone;
  for (const Node node : {network_.maker(value), network_.fetch(value)})
    for (Item item = last_of(node); item != kNone && this->slot(item) > slot; item = previous(item))
      if (next == kNone || this->slot(item) < this->slot(next)) next = item;
  return next;
}

// The later of this use, or `begin` without one, and the last hold up to the slot.
Item Items::later_hold(Value value, Slot slot, Slot begin, Item use) const {
  const Slot from = use == kNone ? begin : this->slot(use);
  for (Item item = last_of(network_.hold(value)); item != kNone; item = previous(item))
    if (this->slot(item) <= slot) return this->slot(item) > from ? item : use;
  return use;
}

std::pair<Value, bool> Items::copied(std::int32_t clock) const {
  const auto index = static_cast<std::size_t>(clock);
  const std::size_t values = network_.value_count();
  if (index < values) return {Value(index), false};
  return {network_.changed_values[index - values], true};
}

Item Items::copied_item(Value value, bool changed) const {
  if (!changed) return first_of(network_.maker(value));
  return server(value, slot(first_of(network_.changer(value))));
}

}  // namespace lowtide::solve::local
