// The moves. Each proposes a small change of the state, or rejects it before changing anything. The
// caller decides by the energy whether to commit or undo.
//
// energy = duration + price * (bytes over the budget, summed over the steps)
//
// With a machine, a tensor may be swapped over a retention gap as well as recomputed, and
// statements about recomputations apply to fetches too.
//
// `temperature` (ticks): moves use it to reject hopeless proposals by an estimate, which takes a
// tenth of the time of the change itself.
#pragma once

#include "lowtide/base/random.h"
#include "lowtide/solve/local/common/state/state.h"

namespace lowtide::solve::local {

// The share of the copies' time that is added to the energy: of two plans of equal duration the one
// with fewer copies is preferred.
inline constexpr double kLinkWeight = 0.005;
// The cost of a fetch compared with a computation, as a share of its time: most of it is hidden.
inline constexpr double kFetchShare = 0.3;

// With a machine: the share of swaps among the tries to relieve a step.
inline constexpr double kSwapShare = 0.5;
// One in this many draws of a small tensor (Network::small) counts.
inline constexpr std::size_t kSmallEvery = 16;

// Switches for ablation; see the options of `search`.
struct Switches {
  bool remove = true, exchange = true, shift = true, push = true;
  bool chains = true;     // a recomputation may recompute its inputs too
  bool estimates = true;  // hopeless proposals are rejected by an estimate
  // With a machine.
  bool recompute = true;  // recomputation
  bool swap = true;       // swaps; without, the copies of the start plan stay
  bool holds = true;      // tensors are held until their copies to the host have ended
  bool queues = true;     // a swap moves copies that it delays
  bool hand_over = true;  // a recomputed tensor takes the place of a swapped one on the link

  bool may_hand_over() const { return hand_over && swap && recompute; }
};

class Moves {
 public:
  Moves(const Network& graph, State& changing, Random& numbers);

  const Network& network;
  State& state;
  Random& random;
  double price = 1;        // ticks per byte over the budget in one step
  double temperature = 0;  // ticks
  Switches switches;
  bool shift_first = false;  // the order is free: first computations may move too
  double typical_time;       // mean of the ops, in ticks; positive

  // The break-even price of evicting a tensor until a use: by recomputation right before it, or,
  // with a machine, by a swap. Profile::kNever if it gives no relief or is not allowed.
  struct Prices {
    double again, swap;
  };
  // A lower bound of it; and its value with the recomputed op's inputs at the current price. A tick
  // of a copy costs `link_price` ticks of the plan.
  Prices least_prices(Value value, Item use, double link_price) const;
  Prices prices_of_gap(Value value, Item use, double link_price) const;
  // Inserts that recomputation.
  void drop_before(Value value, Item use);
  // Swaps it: offloads it, and fetches it for that use.
  void swap_before(Value value, Item use);
  // Whether the outputs of a recomputation could be held from the computation before, without more
  // bytes over the budget.
  bool fits_without(Item item) const { return holding_instead(item, 1) <= 0; }

  // Each returns whether it proposed a change.

  // Evicts a tensor that is live but unused at `slot`, and recomputes it before its next use.
  bool drop_gap(Slot slot);
  // Evicts a tensor that is live but unused at `slot`, and fetches it before its next use.
  bool swap_gap(Slot slot);
  // One of the two, drawn at random.
  bool relieve(Slot slot);
  // Removes a recomputation; its tensors are held from the computation before.
  bool remove_repeat();
  // Removes a recomputation and drops a gap elsewhere, as one change.
  bool exchange(bool at_overload);
  // With a machine: swaps a recomputed tensor, and recomputes, or holds, swapped ones to make room
  // on the link.
  bool hand_over();
  // Moves a computation within the span in which every reader keeps its producer.
  bool shift(Item item);
  // The same for a fetch or a hold, to the just-in-time place of its copy.
  bool shift_transfer(Item item);
  // Moves a computation beyond that span, together with the computations that block it.
  bool push(Item item);

  // The break-even price at which holding the outputs of a recomputation costs as much; 0 if
  // holding them costs nothing.
  double even_price(Item item) const;

  // A random recomputation or, with a machine, fetch; kNone if there is none.
  Item any_repeat();
  // A random recomputation, fetch or hold.
  Item any_later();
  // A random step over the budget; invalid if there is none.
  Slot any_overload();

  // Building blocks of several moves (repeat.cpp).
  struct Allowance {
    int insertions;       // most insertions
    double duration;      // stop when the plan would take longer
    int depth;            // chains of inputs up to this length
    bool fetches = true;  // with a machine: inputs may be fetched instead
  };
  // Recomputes the op before `before`, and those of its inputs that cost more to hold until then.
  void repeat(Node node, Item before, Allowance& allowance, int depth);
  // Removes a recomputation, and those that only it needed.
  void remove_chain(Item item);
  // Whether it may be removed, so that the computation before serves its readers.
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
  // Of a few random gaps, the one whose eviction, or swap, costs least per byte of relief.
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
  // The additional bytes over the budget, summed, of holding this item's outputs from the items
  // before; not exact beyond `limit`.
  double holding_instead(Item item, double limit) const;
  // After the insertion of an item: the items that it leaves without readers, or makes superfluous.
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
