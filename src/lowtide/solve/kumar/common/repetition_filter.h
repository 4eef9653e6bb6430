// Turns schedules that recompute a tensor at every use into plans that use the whole budget.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lowtide/base/random.h"
#include "lowtide/solve/interface/context.h"
#include "lowtide/solve/kumar/common/editable_sequence.h"

namespace lowtide::solve::kumar {

class RepetitionFilter {
 public:
  // `sequence` must be legal. Unread computations are removed at once.
  RepetitionFilter(Context& context, std::span<const OpId> sequence);

  // Whether the current sequence is within the budget. If the first one is not, no later one is.
  bool fits() const { return table_.peak() <= context_.problem().budget; }
  Ticks duration() const { return table_.duration(); }
  std::size_t size() const { return table_.size(); }

  // Removes recomputations while their tensors can be held from before, those first that save most
  // time for the price of the held bytes. The prices of a round are learned from the round before.
  // Offers the result of each round and ends with the best.
  void fill(int rounds);
  // Puts one random recomputation back and fills the freed memory with others. The exchange is kept
  // if the duration does not grow. Ends after `patience` tries per removed item without a gain.
  void exchange(double patience);

 private:
  using Item = EditableSequence::Item;
  using Scored = std::pair<double, Item>;

  bool spend(std::int64_t evaluations);
  double score(Item item) const;
  void set_prices(const std::vector<double>& price);
  std::vector<double> first_prices() const;
  void learn(std::vector<double>& price) const;
  void fill_free();
  void fill_once();
  bool try_removing(Item item);
  bool list_moves();
  bool try_exchange();
  void offer();

  Context& context_;
  EditableSequence table_;
  Random random_;
  std::vector<double> prices_;  // prefix sums by position
  std::int64_t charged_ = 0, owed_ = 0;
  // For exchanges: items that may be removed, highest score first, and items that may come back.
  std::vector<Scored> candidates_;
  std::vector<Item> held_;
  double rate_ = 0;  // ticks for a unit of price, at the margin
};

}  // namespace lowtide::solve::kumar
