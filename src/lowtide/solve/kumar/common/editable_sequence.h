// A sequence of computations, some of which can be removed and put back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/csr.h"
#include "lowtide/base/id_vector.h"
#include "lowtide/base/ids.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/sequence/range_max.h"

namespace lowtide::solve::kumar {

// Each use of a tensor is served by the latest computation of its op before it, which holds the
// tensor up to the last use that it serves. Without a repetition, the tensor is held from before:
//
//   position          0   1   2   3   4   5          uses of t: 1 and 5
//   sequence          A   x   B   C   A'  y          A and its repetition A' make t
//   t is live         ├───┤           ├───┤
//   without A' (4)    ├───────────────────┤          A's time is saved, t's bytes are held
//   over 2..4
//
// Each tensor has a list of its events in the order of the sequence:
//
//   t:   make(0) <-> use(1) <-> make(4) <-> use(5)   take 4 out: make(0) <-> use(1) <-> use(5)
//
// and `bytes_`, a segment tree over positions, adds a tensor's bytes to a range and knows the peak.
// Items are the sequence's computations, by position; positions never change. A tensor's makes and
// uses lie in a list, so that taking an item out and putting the last one back takes its links
// times log(items).
class EditableSequence {
 public:
  using Item = Id<struct ItemTag>;

  // `sequence` must be legal.
  EditableSequence(const Problem& problem, std::span<const OpId> sequence);

  std::size_t size() const { return ops_.size(); }
  OpId op(Item item) const { return ops_[item]; }
  bool present(Item item) const { return present_[item] != 0; }
  Ticks duration() const { return duration_; }
  Bytes peak() const { return Bytes(bytes_.largest()); }
  std::vector<std::int64_t> profile() const { return bytes_.values(size()); }
  std::vector<OpId> sequence() const;

  // Whether an earlier computation of the op is present, or nothing needs the item's outputs.
  bool removable(Item item) const;
  // The effect of removing an item together with all computations that then have no reader.
  struct Saving {
    std::int64_t time = 0;
    double price = 0;  // of the bytes held, less those of what is held no longer
  };
  // `prices` sums up, over the positions before each, the price of a byte there.
  Saving saving(Item item, std::span<const double> prices) const;
  // Of an item that was taken out: what its computation costs, against the price of what is held
  // because of that. Of one that cannot be put back by itself, nothing.
  Saving holding(Item item, std::span<const double> prices) const;

  // With all that nothing reads any more. The log grows by what was taken out.
  void remove(Item item);
  // Puts back what was taken out, and whatever of its makers is then cheaper to compute again than
  // to hold: `rate` is what a unit of price is worth, in ticks.
  void reinstate(Item item, std::span<const double> prices, double rate);
  std::size_t log_size() const { return log_.size(); }
  // Undoes what was done since the log had this size.
  void restore(std::size_t log_size);
  // Operations on ranges so far.
  std::int64_t work() const { return work_; }

  // The bytes at each position if only the first computations were there.
  std::vector<std::int64_t> without_repetitions() const;

 private:
  using Event = Id<struct EventTag>;  // an item makes or uses a tensor
  struct Entry {
    Item item;
    bool taken_out;  // or put back
  };
  static constexpr int kCascade = 6;  // generations that `saving` looks back

  // That of the k-th tensor that the item makes or uses.
  Event event(Item item, std::size_t k) const { return Event(first_event_[item].index() + k); }
  std::size_t made(OpId op) const { return made_[op]; }
  bool is_make(Event event) const { return is_make_[event] != 0; }
  bool serves(Event make) const {
    const Event next = next_[make];
    return next.valid() && !is_make(next);
  }
  bool unread(Item item) const;
  bool droppable(Item item) const;
  // Appends an event.
  void link(TensorId tensor, Item item, bool makes, IdVector<TensorId, Event>& last);
  void take_out(Item item);  // neither writes the log
  void put_back(Item item);
  // Of an item that is there: what it now writes in place of inputs whose last use it is.
  void refresh_overwritten(Item item);
  // Of it, if it is there, and of what uses the tensors of its events before it.
  void refresh_around(Item item);
  // The nearest event in the list before it, and after it, of what is present.
  Event present_before(Event event) const;
  void change(Item item, Event event, std::int64_t bytes, int sign);
  void collect(Item item, int generation, std::span<const double> prices, Saving& saving) const;

  const Graph* graph_;
  IdVector<Item, OpId> ops_;
  IdVector<Item, std::uint8_t> present_;
  IdVector<OpId, std::uint8_t> held_;
  Csr<TensorId, OpId> tensors_;       // what it makes, then what it reads, if it can be freed
  IdVector<OpId, std::size_t> made_;  // how many of them it makes
  IdVector<Item, Event> first_event_;
  // Two more events for each tensor, for what is there at the start and needed at the end.
  IdVector<Event, Event> previous_, next_;
  IdVector<Event, Event> all_previous_;  // in the whole sequence
  IdVector<TensorId, Event> first_;
  Event heads_{0};  // events below are of inputs, there at the start
  IdVector<Event, Item> item_of_;
  IdVector<Event, std::uint8_t> is_make_;
  IdVector<Item, Item> before_, after_;  // of the same op
  IdVector<Item, Item> all_before_;      // in the whole sequence
  IdVector<OpId, Item> first_of_;
  RangeMax bytes_{{}};
  IdVector<Item, Bytes> overwritten_;  // as `bytes_` has it; empty where nothing can be
  Ticks duration_;
  std::vector<Entry> log_;
  std::vector<Item> waiting_;
  std::int64_t work_ = 0;
};

}  // namespace lowtide::solve::kumar
