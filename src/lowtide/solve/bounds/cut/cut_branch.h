// Branch and bound over the tensors that are live at one cut point. Private to the solver; see
// cut_branch.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lowtide/solve/bounds/cut/cut_search.h"

namespace lowtide::solve::bounds {

class CutBranch {
 public:
  // `first`: the result of the search at the root, without decisions.
  CutBranch(CutSearch& search, const CutFound& first);

  // Processes open nodes until the bound reaches `enough`, `nodes` nodes are processed, none is
  // left, or the search is stopped.
  void run(Ticks enough, std::int64_t nodes);

  // A lower bound on the time beyond the base duration.
  Ticks bound() const;
  // Proven: no plan keeps the budget.
  bool infeasible() const { return open_.empty() && !search_.best() && closed_ == Ticks::max(); }
  // More work cannot raise the bound.
  bool finished() const;
  std::int64_t nodes() const { return static_cast<std::int64_t>(path_.size()); }

 private:
  // A decision on the path from the root to a node; `before` is the decision above it, or -1.
  struct Decision {
    std::int32_t before, choice;
    Hold hold;
  };
  struct Node {
    Ticks bound;
    std::int64_t multiplier;
    std::int32_t path, branch;
  };
  // Whether a is processed after b.
  static bool later(const Node& a, const Node& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.path < b.path;
  }
  Ticks incumbent() const { return search_.best() ? search_.best()->extra : Ticks::max(); }
  void open(const Node& node);
  bool branch(const Node& node, Hold hold, Ticks enough);

  CutSearch& search_;
  std::vector<Decision> path_;
  std::vector<Node> open_;       // a heap
  Ticks closed_ = Ticks::max();  // the smallest bound of nodes that cannot be branched on
  std::vector<std::pair<std::int32_t, Hold>> holds_;
};

}  // namespace lowtide::solve::bounds
