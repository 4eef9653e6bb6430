// Branch and bound over the runs that several stages need. Given order. Private to the solver; see
// stage_branch.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/bounds/stage/stage_bound.h"

namespace lowtide::solve::bounds {

class StageBranch {
 public:
  // `stages`: positions of the given order, ascending; the first `first` of them are active at the
  // start.
  StageBranch(const Problem& problem, std::span<const std::size_t> stages,
              std::span<const std::size_t> first);

  // Runs until this work is done, at least `enough` is proven, nothing is left to do, or it is
  // stopped. `known`: a bound of other relaxations, from which it continues.
  void run(Ticks known, Ticks enough, std::int64_t work, Limits& limits);
  bool finished() const { return finished_; }

  // A lower bound on the time beyond the base duration.
  Ticks bound() const { return proven_; }
  // Proven: the budget is infeasible.
  bool infeasible() const { return infeasible_; }

 private:
  // A decided cell, and the state needed to try its other side.
  struct Fork {
    std::size_t mark;
    std::int32_t cell;
    Decision next;  // open: both sides have been tried
    std::vector<double> multipliers;
  };
  // The state of the ascent to the best multipliers without decisions.
  struct Ascent {
    double reach = 0.1, best = 0;
    int idle = 0, count = 0;
  };

  void find_root(std::int64_t until, Limits& limits);
  void begin_round(Ticks enough);
  void end_round();
  void give_up_round();
  void leave_round();
  void heed_missing();
  void visit(Limits& limits);
  bool close_by_bound(Limits& limits);
  bool fix();
  void note_cut(Limits& limits);
  void judge_cut(Limits& limits);
  void branch(Limits& limits);
  std::int32_t choose() const;
  void backtrack();
  // From the multipliers of the last evaluation to others that might reach `top`.
  void step(double top, double stride);

  StageBound bound_;
  std::vector<double> root_, multipliers_, here_;  // best at the root, best here, last tried
  std::vector<double> mean_;                       // by cell: how often recent cuts run it
  Ascent ascent_;
  std::vector<Fork> path_;
  Ticks proven_, aim_;
  Ticks best_ = Ticks::max();  // cost of a choice of runs that fits at every stage
  Ticks most_;                 // no feasible choice costs more, unless capped
  bool capped_ = false;
  std::int64_t stride_ = 0;                             // from target to target
  std::int64_t nodes_ = 0, nodes_before_, most_nodes_;  // of the round; of the one before
  std::int64_t all_nodes_ = 0;
  std::vector<std::uint8_t> missing_;  // stages that become active in the next round
  int misses_ = 0;                     // of leaves of the round
  bool rooted_ = false, in_round_ = false, finished_ = false, infeasible_ = false;
};

}  // namespace lowtide::solve::bounds
