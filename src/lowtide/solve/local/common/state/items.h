// The items of a sequence and their slots: the order of items, the item that serves a reader, and
// the last reader of an item. state.h changes and prices them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/base/ids.h"
#include "lowtide/solve/local/common/state/network.h"
#include "lowtide/solve/local/common/state/slot.h"

namespace lowtide::solve::local {

using Item = Id<struct ItemTag>;
inline constexpr Item kNone{};

class Items {
 public:
  // Items.
  std::size_t item_count() const { return count_; }
  static Item first_of(Node node) { return Item(node.index()); }
  Node node(Item item) const { return node_[item]; }
  Slot slot(Item item) const { return slot_[item]; }
  bool present(Item item) const { return slot_[item].valid(); }
  bool is_first(Item item) const { return item.index() < network_.first_count(); }
  Item previous(Item item) const { return previous_[item]; }  // of the same op
  Item next(Item item) const { return next_[item]; }
  Item last_of(Node node) const { return last_[node]; }  // kNone: there is no such fetch or hold
  // The last reader of the item's outputs before they are made again; without one, the item itself.
  Item end(Item item, Value value) const { return ends_[end_place(item, value)]; }
  Slot end_slot(Item item, Value value) const { return slot(end(item, value)); }
  bool unused(Item item) const;  // no item reads any of its outputs
  // The bytes that it writes over inputs at their last use.
  double overwritten(Item item) const;
  // A recomputation (with a machine also a fetch or a hold), selected by a random number in [0,
  // repeat_count()).
  std::size_t repeat_count() const { return repeats_.size(); }
  Item repeat(std::size_t i) const { return repeats_[i]; }

  // Slots.
  std::size_t slot_count() const { return occupant_.size(); }
  bool has(Slot slot) const { return slot.valid() && slot.index() < slot_count(); }
  Item item_at(Slot slot) const { return occupant_[slot]; }  // kNone in a hole
  Item item_after(Slot slot) const;                          // kNone at the end
  Item item_from(Slot slot) const {
    return item_at(slot).valid() ? item_at(slot) : item_after(slot);
  }

  // The item whose output a reader at `slot` reads.
  Item latest(Node node, Slot slot) const {
    Item item = last_of(node);
    while (slot_[item] >= slot) item = previous_[item];
    return item;
  }
  Item server(Value value, Slot slot) const {
    const Item computed = latest(network_.maker(value), slot);
    return network_.transfers ? later_fetch(value, slot, computed) : computed;
  }
  // The next item that makes the value; kNone if there is none.
  Item next_maker(Value value, Slot slot) const;
  // The item before this one that makes the value: without this item its readers would read that
  // one's.
  Item previous_maker(Item item, Value value) const {
    return network_.transfers ? server(value, slot(item)) : previous(item);
  }
  Item next_maker_after(Item item, Value value) const {
    return network_.transfers ? next_maker(value, slot(item)) : next(item);
  }
  // The last reader in (begin, slot], holds included, and the first in (slot, end), without holds;
  // kNone if there is none.
  std::pair<Item, Item> uses_around(Value value, Slot slot, Slot begin, Slot end) const {
    std::pair<Item, Item> uses = readers_around(value, slot, begin, end);
    if (network_.transfers) uses.first = later_hold(value, slot, begin, uses.first);
    return uses;
  }
  // The last (first) reader strictly between two slots; kNone if there is none.
  Item last_use(Value value, Slot after, Slot before) const {
    return uses_around(value, before - 1, after, before).first;
  }
  Item first_use(Value value, Slot after, Slot before) const {
    return uses_around(value, after, after, before).second;
  }
  // The first hold in (slot, end); kNone if there is none.
  Item first_hold(Value value, Slot slot, Slot end) const;
  // Recomputable tensors with uses on both sides of the slot (approximately) when the sequence was
  // loaded: candidates that are held across it now, with few exceptions.
  std::span<const Value> spanning(Slot slot) const {
    return spans_[slot.index() * spans_.rows() / occupant_.size()];
  }

  // With a machine.
  bool is_fetched(Value value) const { return last_[network_.fetch(value)] != kNone; }
  // A copy to the host: of the first value, or of the value after a mutation.
  std::int32_t copy_clock(Value value, bool changed) const {
    return static_cast<std::int32_t>(changed ? network_.value_count() : value.index()) +
           (changed ? network_.change[value] : 0);
  }
  std::pair<Value, bool> copied(std::int32_t clock) const;
  // The copied value is live from this item on.
  Item copied_item(Value value, bool changed) const;
  // Whether the value that an item at this slot makes is the one after the mutation.
  bool is_changed(Value value, Slot at) const {
    const Node changer = network_.changer(value);
    return changer.valid() && at > slot(first_of(changer));
  }

 protected:
  explicit Items(const Network& network) : network_(network) {}

  bool overwrites(Item item, Value value) const;
  Item later_fetch(Value value, Slot slot, Item computed) const;
  std::pair<Item, Item> readers_around(Value value, Slot slot, Slot begin, Slot end) const;
  Item later_hold(Value value, Slot slot, Slot begin, Item use) const;
  std::size_t end_place(Item item, Value value) const {
    return static_cast<std::size_t>(ends_at_[item]) + value.index();
  }
  Item& end_ref(Item item, Value value) { return ends_[end_place(item, value)]; }

  const Network& network_;
  mutable std::int64_t work_ = 0;
  IdVector<Slot, Item> occupant_;
  IdVector<Item, Node> node_;
  IdVector<Item, Slot> slot_;
  IdVector<Item, Item> previous_, next_;
  IdVector<Item, std::int32_t> ends_at_;  // index in ends_ of each output's end, less the output
  std::vector<Item> ends_;
  IdVector<Node, Item> last_;
  std::vector<Item> repeats_;  // without first computations
  std::size_t count_ = 0;
  Csr<Value> spans_;  // by section of the slots
};

}  // namespace lowtide::solve::local
