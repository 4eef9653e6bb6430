// The state of the search: a sequence of computations, its duration and its bytes over the budget,
// kept up to date under insertion, removal and shifting of single computations, each with an exact
// undo.
//
// Any op may be inserted again anywhere after its first computation; lifetimes follow from the
// sequence. An item is one computation. A tensor made by an item is live until the last use before
// the next item of the same op (its `end`; the item itself if there is no use). So each use reads
// from the latest item before it. docs/why/search.md has a drawing.
//
// With a machine there are also items that fetch a tensor, and items that hold one. A fetch makes
// its tensor like a computation; "the next item of the same op" then means the next item that makes
// the tensor. A hold is a use. Copies to the host follow from the fetches as in plan_from_events,
// and the duration from the three lanes (lanes.h).
//
// The sequence is stored in an array with holes, so an insertion moves few items, and "before" is a
// comparison of two slots. Slots of items change when holes are made; items keep their numbers. The
// first computation of a node is the item with the same number, and is never removed.
//
// Invariant: everything is a function of the sequence. Debug builds compare it with a fresh build
// after each round, and accepted moves with `sim`.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/base/ids.h"
#include "lowtide/plan/events.h"
#include "lowtide/solve/local/common/state/items.h"
#include "lowtide/solve/local/common/state/lanes.h"
#include "lowtide/solve/local/common/state/network.h"
#include "lowtide/solve/local/common/state/profile.h"

namespace lowtide::solve::local {

class State : public Items {
 public:
  explicit State(const Network& network);

  // Loads a topological sequence with every op at least once. Clears the log.
  void load(std::span<const Event> sequence);
  std::vector<Event> sequence() const;

  double compute_time() const { return compute_time_; }  // ticks
  // The duration. With a machine: by the latest load, commit, undo or settle.
  double duration() const { return network_.transfers ? duration_ : compute_time_; }
  void settle();
  const Profile& profile() const { return profile_; }
  bool within() const { return profile_.within(); }
  std::int64_t work() const { return work_ + profile_.touched(); }

  // Changes. `before`: the item before which the computation is inserted.
  Item insert(Node node, Item before);
  void remove(Item item);  // a recomputation
  // Precondition: afterwards every reader still reads its inputs from the same items, and the items
  // of a node keep their order.
  void move(Item item, Item before);

  void undo();    // reverts all changes since the last commit
  void commit();  // keeps them, and clears the undo log
  bool changed() const { return !log_.empty(); }
  // Calls use(item) for each item that was inserted since the last commit and still exists.
  template <class Use>
  void for_inserted(Use use) const {
    for (const Entry& entry : log_)
      if (entry.change == Change::insert && present(entry.item)) use(entry.item);
  }

  // Transfers, with a machine. Times are those of the latest evaluation of the lanes, perhaps of a
  // change since undone: exact enough for estimates.
  double host_bytes() const { return host_; }        // peak on the host
  double fetch_time() const { return fetch_time_; }  // of all copies in
  const Lanes& lanes() const { return lanes_; }
  Item fetched_by(std::int32_t clock) const {
    return Item(static_cast<std::size_t>(clock) - arrivals_);
  }
  std::int32_t arrival_clock(Item fetch) const {
    return static_cast<std::int32_t>(arrivals_ + fetch.index());
  }
  double begin_time(Slot slot) const {  // start of the item at this slot
    return lanes_.begin_of(slot.index() / Profile::kBlock) + before_[slot];
  }
  Slot slot_at(double time) const;  // the first that begins at or after this time, approximately
  // An estimate, until the next evaluation prices it.
  void guess_copy(Value value, bool changed, double end) {
    lanes_.guess(copy_clock(value, changed), end);
    touch(slot(first_of(changed ? network_.changer(value) : network_.maker(value))));
  }

  // Throw InternalError if an invariant is broken; both are as slow as pricing a whole plan.
  void check_invariants() const;  // against a fresh build
  void check_price() const;       // bytes of each step and duration, against `sim`

 private:
  enum class Change : std::uint8_t { insert, remove, move };
  struct Entry {
    Change change;
    Item item;
    Node node;
    Item before;  // for undo: the item that followed it
  };

  Item new_item(Node node);
  std::int32_t first_output(Node node) const {
    return static_cast<std::int32_t>(network_.made[node].first.index());
  }
  std::vector<Item>& spare_of(Node node);
  void enlist(Item item);  // in the list of recomputations
  void unlist(Item item);
  Item insert_item(Item item, Node node, Item before);
  void remove_item(Item item);
  void move_item(Item item, Item before);
  void attach(Item item);  // the item reads its inputs
  void detach(Item item);
  // After a change: updates the in-place bytes of the item and of all stale items.
  void note_in_place(Item item) {
    if (network_.has_overwrites()) stale_.push_back(item);
  }
  void refresh_in_place(Item item);
  void refresh_noted();
  // The events on the lanes (transfers.cpp). A value is touched if anything changes in the items
  // that make or read it; a slot if anything changes in its item.
  void touch(Value value) {
    if (!network_.transfers || is_touched_[value] != 0) return;
    if (!is_fetched(value) && stops_[value].empty()) return;
    is_touched_[value] = 1;
    touched_.push_back(value);
  }
  void touch(Slot slot) {
    if (network_.transfers) lanes_.mark(slot.index() / Profile::kBlock);
  }
  void touch_overwritten(Item item);
  void load_transfers();
  void count_fetch(Node node, int by);
  void list_stops(Value value);
  void refresh_stops(Value value);
  void fill_block(std::size_t block);
  Slot make_room(Item before);  // a hole right before it
  void shift(Slot hole, Slot to);
  void respace();
  void index_spans();
  // Distributes the items over the slots; `live`: the bytes during each.
  void place(std::span<const Item> items, std::span<const double> live);
  Profile profile_;
  double compute_time_ = 0;

  IdVector<Item, double> in_place_;       // `overwritten`, as in the profile
  IdVector<Item, std::int32_t> listed_;   // index in repeats_; -1: not in it
  std::vector<Item> stale_;               // their `overwritten` may have changed
  std::vector<std::vector<Item>> spare_;  // numbers of removed items, by their number of outputs
  std::vector<Entry> log_;

  // With a machine.
  struct Stop {
    Item item;
    Lanes::Kind kind;
    std::int32_t clock;
    bool operator==(const Stop&) const = default;
  };
  struct ItemStop {
    Lanes::Kind kind;
    std::int32_t clock;
    std::int32_t next;  // of the same item; -1: none
  };
  Lanes lanes_;
  double duration_ = 0, committed_duration_ = 0;
  double host_ = 0, fetch_time_ = 0;
  std::size_t arrivals_ = 0;       // transfer times before those of fetches
  IdVector<Slot, double> before_;  // time in the block before the slot, when last filled
  IdVector<Value, std::vector<Stop>> stops_;
  std::vector<Stop> new_stops_;
  IdVector<Item, std::int32_t> at_item_;  // first entry in item_stops_; -1: none
  std::vector<ItemStop> item_stops_;
  std::int32_t spare_stop_ = -1;  // also a list
  std::vector<Value> touched_;
  IdVector<Value, std::uint8_t> is_touched_;
};

}  // namespace lowtide::solve::local
