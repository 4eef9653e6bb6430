// What makes plans of schedules that compute everything again whenever it is read.
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
  // A legal sequence. Unread computations are left out at once.
  RepetitionFilter(Context& context, std::span<const OpId> sequence);

  // What it has come to keeps the budget. If the sequence itself does not, nothing else will.
  bool fits() const { return table_.peak() <= context_.problem().budget; }
  Ticks duration() const { return table_.duration(); }
  std::size_t size() const { return table_.size(); }

  // Leaves repetitions out as long as what they made can be held from before, those first that save
  // most for the price of the memory that they take. Several rounds, each with prices that the one
  // before has taught; offers what each comes to, and ends with the best.
  void fill(int rounds);
  // Puts repetitions back, one at a time at random, and fills what that frees: kept if it takes no
  // longer. Until `patience` tries for each that may come back have gone by without a gain.
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
  std::vector<double> prices_;  // summed up before each position
  std::int64_t charged_ = 0, owed_ = 0;
  // For exchanges: what may be left out, dearest first, and what may come back.
  std::vector<Scored> candidates_;
  std::vector<Item> held_;
  double rate_ = 0;  // ticks for a unit of price, at the margin
};

}  // namespace lowtide::solve::kumar
