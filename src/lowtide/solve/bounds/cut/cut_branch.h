// Branch and bound on what one cut point keeps. Private to the solver; see cut_branch.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lowtide/solve/bounds/cut/cut_search.h"

namespace lowtide::solve::bounds {

class CutBranch {
 public:
  // `first` is what the search has found without holds.
  CutBranch(CutSearch& search, const CutFound& first);

  // Handles open nodes until the bound is at least `enough`, `nodes` have been handled, nothing is
  // left to do, or the search is stopped.
  void run(Ticks enough, std::int64_t nodes);

  // Proven beside the base duration.
  Ticks bound() const;
  // No plan keeps within the budget.
  bool infeasible() const { return open_.empty() && !search_.best() && closed_ == Ticks::max(); }
  // More work cannot raise the bound.
  bool finished() const;
  std::int64_t nodes() const { return static_cast<std::int64_t>(path_.size()); }

 private:
  // What was decided last on the way to a node, and before that.
  struct Decision {
    std::int32_t before, choice;
    Hold hold;
  };
  struct Node {
    Ticks bound;
    std::int64_t multiplier;
    std::int32_t path, branch;
  };
  // Whether a is handled after b.
  static bool later(const Node& a, const Node& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.path < b.path;
  }
  Ticks incumbent() const { return search_.best() ? search_.best()->extra : Ticks::max(); }
  void open(const Node& node);
  bool branch(const Node& node, Hold hold, Ticks enough);

  CutSearch& search_;
  std::vector<Decision> path_;
  std::vector<Node> open_;       // a heap
  Ticks closed_ = Ticks::max();  // the smallest bound of nodes that cannot be divided
  std::vector<std::pair<std::int32_t, Hold>> holds_;
};

}  // namespace lowtide::solve::bounds
