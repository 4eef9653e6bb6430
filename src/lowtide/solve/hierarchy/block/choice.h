// Which option of each block inside, if each half of each runs once. Private to the block solvers.
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
  // Both must outlive it.
  Choice(const BlockTask& task, Limits& limits);

  // Whether there is a block inside with more than one option that may be the best.
  bool has_choice() const;
  // Chooses for a budget. Says whether the choice was seen to keep it.
  bool run(const BlockBudget& budget);

  // Of the last run: the ops of the best choice that keeps the budget, or else of that with the
  // smallest peak; empty if there was no time for any.
  const std::vector<OpId>& sequence() const { return found_; }
  // And which option of each child that was.
  const std::vector<std::size_t>& options() const { return found_options_; }

 private:
  using Hull = std::vector<std::pair<std::size_t, const BlockOption*>>;  // with the option's number

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
  std::vector<std::size_t> first_, last_;  // nodes of each child
  std::optional<std::size_t> rest_;        // node
  Bytes border_at_rest_;
  std::vector<std::size_t> at_;  // on its hull
  struct Measured {
    std::vector<Bytes> live;  // at most, while each node runs
    Bytes used;
    Ticks duration;
  };
  // Of each choice so far: those for neighbouring budgets pass the same ones.
  std::map<std::vector<std::size_t>, Measured> measured_;
  Measured now_;
  std::vector<OpId> found_;
  std::vector<std::size_t> found_options_;
};

}  // namespace lowtide::solve::hierarchy
