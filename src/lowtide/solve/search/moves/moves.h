// The moves: each changes the state a little, or refuses before it touches it. Whoever calls one
// decides by the energy whether to commit or to undo.
//
// energy = duration + price * (bytes over the budget, summed over the steps)
//
// `temperature` (ticks) is what a worsening may cost: moves use it to refuse hopeless proposals by
// an estimate, which costs a tenth of the change itself.
#pragma once

#include "lowtide/base/random.h"
#include "lowtide/solve/search/state/state.h"

namespace lowtide::solve::search {

// What can be left out, to see what it is worth.
struct Switches {
  bool remove = true, exchange = true, shift = true, push = true;
  bool chains = true;     // a repeated computation may take its inputs along
  bool estimates = true;  // hopeless proposals are refused before they are tried
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

  // Each returns whether it proposed something.

  // Frees a tensor that is held across `slot` without being used there, and computes it again
  // before its next use.
  bool drop_gap(Slot slot);
  // Deletes a repeated computation; its tensors are held from the one before.
  bool remove_repeat();
  // Deletes a repeated computation and drops a gap elsewhere, whatever the price in between.
  bool exchange(bool at_overload);
  // Moves a computation within the span in which no reader changes its server.
  bool shift(Item item);
  // Moves a computation beyond that span, and what stands in its way with it.
  bool push(Item item);

  // A repeated computation drawn at random; kNone if there is none.
  Item any_repeat();
  // A step over the budget, drawn at random; not valid if there is none.
  Slot any_overload();

  // What several moves are made of (repeat.cpp).
  struct Allowance {
    int insertions;   // so many at most
    double duration;  // stop when the whole would last longer
    int depth;        // chains of inputs up to this length
  };
  // Computes the op again in front of `before`, and its inputs too where that is cheaper than to
  // hold them until then.
  void repeat(Node node, Item before, Allowance& allowance, int depth);
  // Removes a repeated computation, and those that only it needed.
  void remove_chain(Item item);

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
  Gap draw_gap(Slot slot);
  Gap gap_at(Item item, Value value, Slot slot) const;
  double gap_relief(const Gap& gap, Slot until) const;
  double inputs_estimate(const Gap& gap, Slot here, double limit) const;
  Item place_in_gap(const Gap& gap, Slot slot);
  bool worth_trying(const Gap& gap, Item before, double& limit);
  bool may_stand_before(Node node, Item before) const;
  bool hopeless_removal(Item item) const;

  std::vector<Item> doomed_;  // of remove_chain
};

}  // namespace lowtide::solve::search
