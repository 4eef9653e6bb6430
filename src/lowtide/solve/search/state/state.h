// The state of the search: a sequence of computations, its duration and its bytes over the budget,
// kept up to date under insertion, removal and shifting of single computations, each with an exact
// undo.
//
// Any op may be inserted again anywhere after its first computation: retention follows from the
// sequence alone. An item is one computation. A tensor made by an item stays until the last use
// before the next item of the same op (its `end`; the item itself if nothing uses it), so a use is
// always served by the latest item before it. docs/why/search.md has a picture.
//
// The sequence lies in an array with holes, so that an insertion moves few items, and "before" is a
// comparison of two slots. Slots of items change whenever room is made; items keep their numbers.
// The first computation of a node is the item of the same number, and never is removed.
//
// Invariant: everything is a function of the sequence. Debug builds hold it against a fresh build
// after each round, and accepted moves against what `sim` finds.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/base/ids.h"
#include "lowtide/solve/search/state/network.h"
#include "lowtide/solve/search/state/profile.h"

namespace lowtide::solve::search {

using Item = Id<struct ItemTag>;
inline constexpr Item kNone{};

class State {
 public:
  explicit State(const Network& network);

  // A topological sequence with every op at least once. Forgets the log.
  void load(std::span<const OpId> sequence);
  std::vector<OpId> sequence() const;

  double duration() const { return duration_; }  // ticks
  const Profile& profile() const { return profile_; }
  bool within() const { return profile_.within(); }
  std::size_t item_count() const { return count_; }
  std::int64_t work() const { return work_ + profile_.touched(); }

  // Items.
  static Item first_of(Node node) { return Item(node.index()); }
  Node node(Item item) const { return node_[item]; }
  Slot slot(Item item) const { return slot_[item]; }
  bool present(Item item) const { return slot_[item].valid(); }
  bool is_first(Item item) const { return item.index() < network_.node_count(); }
  Item previous(Item item) const { return previous_[item]; }  // of the same op
  Item next(Item item) const { return next_[item]; }
  Item last_of(Node node) const { return last_[node]; }
  // The last reader of the k-th output before the op runs again, or the item itself.
  Item end(Item item, int k) const { return ends_[end_place(item, k)]; }
  Slot end_slot(Item item, int k) const { return slot(end(item, k)); }
  bool unused(Item item) const;  // nothing reads any of its outputs
  // The bytes that it writes in place of what it is the last to read.
  double overwritten(Item item) const;
  // A repeated computation, chosen by a number drawn from [0, repeat_count()).
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

  // The item whose output a reader at `slot` would get.
  Item latest(Node node, Slot slot) const {
    Item item = last_of(node);
    while (slot_[item] >= slot) item = previous_[item];
    return item;
  }
  Item server(Value value, Slot slot) const { return latest(network_.maker(value), slot); }
  // The last reader in (begin, slot] and the first in (slot, end); kNone.
  std::pair<Item, Item> uses_around(Value value, Slot slot, Slot begin, Slot end) const;
  // The last (first) reader strictly between two slots; kNone.
  Item last_use(Value value, Slot after, Slot before) const {
    return uses_around(value, before - 1, after, before).first;
  }
  Item first_use(Value value, Slot after, Slot before) const {
    return uses_around(value, after, after, before).second;
  }
  // The tensors that may be made again and that, when the sequence was loaded, were needed on both
  // sides of the slot, or nearly so: few of them are not held across it now.
  std::span<const Value> spanning(Slot slot) const {
    return spans_[slot.index() * spans_.rows() / occupant_.size()];
  }

  // Changes. `before` is the item that the computation is put in front of.
  Item insert(Node node, Item before);
  void remove(Item item);  // a repeated computation
  // Precondition: every reader still reads its inputs from the same items afterwards.
  void move(Item item, Item before);

  void undo();    // reverts all changes since the last commit
  void commit();  // keeps them, and clears the undo log
  bool changed() const { return !log_.empty(); }

  // InternalError if one is broken; both as slow as pricing a whole plan.
  void check_invariants() const;  // against a state built anew
  void check_price() const;       // bytes of each step and duration, against `sim`

 private:
  enum class Change : std::uint8_t { insert, remove, move };
  struct Entry {
    Change change;
    Item item;
    Node node;
    Item before;  // to undo: what it stood in front of
  };

  Item new_item(Node node);
  std::vector<Item>& spare_of(Node node);
  void enlist(Item item);  // among the repeated computations
  void unlist(Item item);
  Item insert_item(Item item, Node node, Item before);
  void remove_item(Item item);
  void move_item(Item item, Item before);
  void attach(Item item);  // the item reads its inputs
  void detach(Item item);
  // After a change: takes up what the item, and all that were noted on the way, now write in place.
  void note_in_place(Item item) {
    if (network_.has_overwrites()) stale_.push_back(item);
  }
  void refresh_in_place(Item item);
  void refresh_noted();
  Slot make_room(Item before);  // a hole right in front of it
  void shift(Slot hole, Slot to);
  void respace();
  void index_spans();
  // Spreads the items over the slots; `live` is the bytes during each.
  void place(std::span<const Item> items, std::span<const double> live);
  std::size_t end_place(Item item, int k) const {
    return static_cast<std::size_t>(ends_at_[item] + k);
  }
  Item& end_ref(Item item, int k) { return ends_[end_place(item, k)]; }

  const Network& network_;
  Profile profile_;
  double duration_ = 0;
  mutable std::int64_t work_ = 0;

  IdVector<Slot, Item> occupant_;
  IdVector<Item, Node> node_;
  IdVector<Item, Slot> slot_;
  IdVector<Item, Item> previous_, next_;
  IdVector<Item, double> in_place_;       // `overwritten`, as the profile has it
  IdVector<Item, std::int32_t> ends_at_;  // where in ends_ those of its outputs begin
  IdVector<Item, std::int32_t> listed_;   // where in repeats_; -1: it is not
  std::vector<Item> ends_;
  IdVector<Node, Item> last_;
  std::vector<Item> stale_;               // their `overwritten` may have changed
  std::vector<Item> repeats_;             // those that are no first computations
  std::vector<std::vector<Item>> spare_;  // numbers of removed items, by their count of outputs
  std::size_t count_ = 0;
  Csr<Value> spans_;  // by part of the slots
  std::vector<Entry> log_;
};

}  // namespace lowtide::solve::search
