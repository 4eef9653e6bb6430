// Chooses an option for each inner block, if each half of each block runs once. Private to the
// block solvers.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide::solve::hierarchy {

class Choice {
 public:
  // Both must outlive this object.
  Choice(const BlockTask& task, Limits& limits);

  // Whether some inner block has more than one option on its convex hull.
  bool has_choice() const;
  // Chooses for a budget. Returns whether the choice was measured to keep the budget.
  bool run(const BlockBudget& budget);

  // The ops of the best choice of the last run that keeps the budget, or else of the choice with
  // the smallest peak; empty if there was no time for any.
  const std::vector<OpId>& sequence() const { return found_; }
  // The option of each child in that choice.
  const std::vector<std::size_t>& options() const { return found_options_; }

 private:
  using Hull = std::vector<std::pair<std::size_t, const BlockOption*>>;  // the index and the option

  const std::vector<LevelNode>& nodes() const { return task_.level.nodes; }
  static double price(const Hull::value_type& from, const Hull::value_type& to);
  Bytes saved_by(std::size_t child) const { return hulls_[child][at_[child]].second->saved; }
  std::size_t length(std::size_t node) const;
  Bytes own_peak(std::size_t node) const;
  std::vector<OpId> chosen_sequence() const;
  bool measure();
  bool take_once();
  void choose(Bytes most, Bytes most_saved);
  bool step_own(std::size_t node);
  template <class Visit>
  void for_each_set(Visit visit, bool steps);

  const BlockTask& task_;
  Limits& limits_;
  std::vector<Hull> hulls_;
  std::vector<std::size_t> first_, last_;  // node of each child
  std::optional<std::size_t> rest_;        // node
  Bytes border_at_rest_;
  std::vector<std::size_t> at_;  // index on its hull
  struct Measured {
    std::vector<Bytes> live;  // the largest while each node runs
    Bytes used;
    Ticks duration;
  };
  // All choices so far: neighbouring budgets pass the same ones.
  std::map<std::vector<std::size_t>, Measured> measured_;
  Measured now_;
  std::vector<OpId> found_;
  std::vector<std::size_t> found_options_;
};

}  // namespace lowtide::solve::hierarchy
