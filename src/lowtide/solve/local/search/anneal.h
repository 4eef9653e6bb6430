// Simulated annealing over sequences of computations: draws moves, accepts or undoes them, and
// steers the price of a byte over the budget. See search.cpp for the algorithm.
#pragma once

#include <vector>

#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/local/common/moves/moves.h"

namespace lowtide::solve::local::search {

class Anneal {
 public:
  Anneal(const Network& network, Context& context, bool shift_first);

  // Sets the current sequence, and the best one if this is better. `offered`: the context already
  // has this plan.
  void load(std::span<const Event> sequence, bool offered);
  // Anneals until the share `until` of the context's limits is used (see Limits::used). The
  // temperature falls from `hot` to `cold`, in typical op durations.
  void round(double until, double hot, double cold);
  // Raises the price until the state keeps the budget, or until that share is used.
  void repair(double until);

  // The share of the limits that is used; without limits, of a default amount of work.
  double used() const;
  // Drops all recomputations, then shifts first computations until the order alone keeps the
  // budget, or until that share is used. Only for a free order.
  void reorder(double until);

  bool has_best() const { return !best_.empty(); }
  const std::vector<Event>& best() const { return best_; }
  void offer_best();  // to the context, unless already offered
  const State& state() const { return state_; }

 private:
  void step();
  void propose();
  void propose_with_transfers();
  void propose_first();
  void accept_or_undo(double before);
  void price_or_undo(double before);
  void keep_or_undo();
  void save();
  bool host_is_full() const {
    return network_.transfers && state_.host_bytes() > network_.host_budget;
  }
  std::vector<Event> without_repeats() const;
  bool poll();  // counts work; returns whether to stop
  // `duration`: that of the state, or a lower bound on it.
  double energy(double duration) const {
    double sum = duration + moves_.price * state_.profile().over();
    if (network_.transfers) sum += kLinkWeight * state_.fetch_time();
    return sum;
  }
  void steer();
  void price_by_repeats();

  const Network& network_;
  Context& context_;
  bool shift_first_, order_only_ = false;
  bool near_;  // take the price from the first start plan within the budget (option `near`)
  State state_;
  Moves moves_;
  double unlimited_work_;
  double least_price_, most_price_;
  std::vector<Event> best_;
  double best_duration_;
  bool offered_ = false;  // the context has best_
  bool unsaved_ = false;  // the state is better than best_; best_duration_ is already the state's
  std::int64_t work_seen_ = 0, offered_at_ = 0;
  int within_ = 0, outside_ = 0;  // samples of the state since the last call of steer()
  int streak_ = 0;                // consecutive changes of the price, negative if it falls
  std::int64_t accepted_ = 0;     // moves, in debug builds
};

}  // namespace lowtide::solve::local::search
