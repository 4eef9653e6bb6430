// The moves: each changes the state a little, or refuses before it touches it. Whoever calls one
// decides by the energy whether to commit or to undo.
//
// energy = duration + price * (bytes over the budget, summed over the steps)
//
// With a machine, a tensor that waits may leave for the host as well as be computed again, and what
// is said of repeated computations is meant of fetches too.
//
// `temperature` (ticks) is what a worsening may cost: moves use it to refuse hopeless proposals by
// an estimate, which costs a tenth of the change itself.
#pragma once

#include "lowtide/base/random.h"
#include "lowtide/solve/local/common/state/state.h"

namespace lowtide::solve::local {

// Of two plans that last as long the one with fewer copies is the better start: so much of a copy's
// time is energy.
inline constexpr double kLinkWeight = 0.005;
// What a fetch is taken to cost where it is compared with a computation: most of it is hidden.
inline constexpr double kFetchShare = 0.3;

// Of what is tried to relieve a step, with a machine.
inline constexpr double kSwapShare = 0.5;
// Of the draws of a small tensor (Network::small) one in so many counts.
inline constexpr std::size_t kSmallEvery = 16;

// What can be left out, to see what it is worth.
struct Switches {
  bool remove = true, exchange = true, shift = true, push = true;
  bool chains = true;     // a repeated computation may take its inputs along
  bool estimates = true;  // hopeless proposals are refused before they are tried
  // With a machine.
  bool recompute = true;  // computations are repeated
  bool swap = true;       // tensors leave and are fetched; without, those of the start stay as is
  bool holds = true;      // tensors are held until their copies have ended
  bool queues = true;     // a swap moves along what its copies stand in the way of
  bool hand_over = true;  // what is made again takes the place on the link of what is swapped

  bool may_hand_over() const { return hand_over && swap && recompute; }
};

class Moves {
 public:
  Moves(const Network& graph, State& changing, Random& numbers);

  const Network& network;
  State& state;
  Random& random;
  double price = 1;        // ticks for a byte over the budget during one step
  double temperature = 0;  // ticks
  Switches switches;
  bool shift_first = false;  // the order is free: first computations may move too
  double typical_time;       // mean of the ops, in ticks; positive

  // What a byte must cost for it to pay that a tensor is not held until a use, but made again right
  // before it, or, with a machine, copied to the host and back; Profile::kNever if that relieves
  // nothing, or may not be.
  struct Prices {
    double again, swap;
  };
  // At least, and with the inputs of what is made again at the price that there is. A tick of a
  // copy costs `link_price` ticks of the run.
  Prices least_prices(Value value, Item use, double link_price) const;
  Prices prices_of_gap(Value value, Item use, double link_price) const;
  // Makes it again there.
  void drop_before(Value value, Item use);
  // Has it leave, and fetches it for that use.
  void swap_before(Value value, Item use);
  // Whether what a repeated computation makes could be held instead, from the one before, with
  // nothing more over the budget.
  bool fits_without(Item item) const { return holding_instead(item, 1) <= 0; }

  // Each returns whether it proposed something.

  // Frees a tensor that is held across `slot` without being used there, and computes it again
  // before its next use.
  bool drop_gap(Slot slot);
  // Frees a tensor that is held across `slot`, and fetches it before its next use.
  bool swap_gap(Slot slot);
  // One of the two, drawn at random.
  bool relieve(Slot slot);
  // Deletes a repeated computation; its tensors are held from the one before.
  bool remove_repeat();
  // Deletes a repeated computation and drops a gap elsewhere, whatever the price in between.
  bool exchange(bool at_overload);
  // With a machine: swaps what was made again, and makes again, or holds, what was swapped, so that
  // there is room on the link.
  bool hand_over();
  // Moves a computation within the span in which no reader changes its server.
  bool shift(Item item);
  // The same for a fetch or a hold: to where its copy, or the one that it waits for, suggests.
  bool shift_transfer(Item item);
  // Moves a computation beyond that span, and what stands in its way with it.
  bool push(Item item);

  // The price at which it costs as much to hold what a repeated computation makes; 0 if it costs
  // nothing.
  double even_price(Item item) const;

  // A repeated computation drawn at random; kNone if there is none. With a machine, no hold.
  Item any_repeat();
  // The same, or a hold.
  Item any_later();
  // A step over the budget, drawn at random; not valid if there is none.
  Slot any_overload();

  // What several moves are made of (repeat.cpp).
  struct Allowance {
    int insertions;       // so many at most
    double duration;      // stop when the whole would last longer
    int depth;            // chains of inputs up to this length
    bool fetches = true;  // with a machine: inputs may be fetched instead
  };
  // Computes the op again in front of `before`, and its inputs too where that is cheaper than to
  // hold them until then.
  void repeat(Node node, Item before, Allowance& allowance, int depth);
  // Removes a repeated computation, and those that only it needed.
  void remove_chain(Item item);
  // Whether it may be removed: its readers are served by the one before.
  bool may_remove(Item item) const;

 private:
  struct Gap {
    Item item = kNone;
    Value value;
    Item last = kNone;  // the last use before, or the item itself
    Item next = kNone;  // the first use after
  };
  // After the item at `low`, up to right before the one at `high`.
  struct Span {
    Slot low, high;
  };
  Span span_of(Item item) const;
  bool may_move(Item item) const;
  bool push_left(Item item, Item before, int& allowance);
  bool push_right(Item item, Item before, int& allowance);
  // Of a few drawn, the one that to drop, or to swap, costs least for each byte of relief.
  template <bool kSwap>
  Gap draw_gap(Slot slot);
  double cost_of_swap(const Gap& gap) const;
  double plain_relief(const Gap& gap) const;  // bytes, of the one tensor
  double price_of_swap(const Gap& gap, double link_price) const;
  Gap gap_at(Item item, Value value, Slot slot) const;
  Gap gap_before(Value value, Item use) const;
  double gap_relief(const Gap& gap, Slot until) const;  // bytes, of all outputs of the op
  double inputs_estimate(const Gap& gap, Slot here, double limit, bool fetches = true) const;
  Item place_in_gap(const Gap& gap, Slot slot);
  bool worth_trying(const Gap& gap, Item before, double& limit);
  bool may_stand_before(Node node, Item before) const;
  bool hopeless_removal(Item item) const;
  // Bytes over the budget, summed, that it would cost to hold what this item makes from the makers
  // before; no need to be exact beyond `limit`.
  double holding_instead(Item item, double limit) const;
  // After an item was put in: what it makes unread, and what it makes superfluous.
  void drop_unread_before(Item item);
  void drop_superfluous_after(Item item);

  // With a machine (move_swap.cpp). `changed`: of the copy behind the op that changes the value in
  // place, not of the one before. `slot`: where relief is wanted, if that is known.
  bool may_leave(Value value) const;  // the host budget allows it
  void swap_in(const Gap& gap, Slot slot);
  // Whether a fetch, rather than a computation, makes what an item at the end of its gap reads.
  bool fetch_instead(Value value, Item server, Item use, Item reader, bool repeats);
  bool move_to(Item item, Slot slot);
  double time_needed(Item fetch) const;
  double just_in_time(double copy, double needed) const;
  bool has_copy(Value value, bool changed) const;
  double made_at(Value value, bool changed) const;
  double freed_at(Value value, bool changed) const;
  void begin_copy(Value value, bool changed, Slot slot);
  void remove_holds(Value value, bool changed);
  bool hold_until_copied(Value value, bool changed);
  void push_holds(Value value, bool changed, int most);
  void push_fetches(Item fetch, int most);
  Slot issued_at(std::int32_t copy) const;

  // To hand over a place on the link (move_hand_over.cpp).
  struct Giver {
    Item fetch = kNone;
    Node node;
    double cost = 0;    // ticks, of what it does instead
    bool held = false;  // rather than made again
    bool operator==(const Giver& other) const { return fetch == other.fetch; }
  };
  Value largest_read(Item item) const;           // of what it makes; not valid if nothing is read
  Item reader_of(Item item, Value value) const;  // the first; kNone
  Item draw_taker();
  Giver draw_giver(Value taker, double limit);  // `limit`: what it may cost
  void give_way(const Giver& giver, double left);

  std::vector<Item> doomed_;  // of remove_chain
};

}  // namespace lowtide::solve::local
