// The covering bound: every retention gap may be evicted, at the cost of a recomputation. Given
// order. Private to the solver; see gap_cover.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/problem.h"

namespace lowtide::solve::bounds {

class GapCover {
 public:
  // `profile`: see own_profile. Linear.
  GapCover(const Problem& problem, std::span<const Bytes> profile);

  // Makes so many steps of the subgradient method, or fewer if stopped or without gain. `target`:
  // the expected bound on the time beyond the base duration.
  void run(Ticks target, std::int64_t steps, Limits& limits);
  bool finished() const { return finished_; }

  // The bound of the best prices on the time beyond the base duration, in integers. Linear.
  Ticks certified() const;
  // Proven: some step exceeds the budget whatever is evicted.
  bool infeasible() const;

 private:
  struct Gap {
    std::int32_t from, past;  // range of the steps over the budget
    std::int64_t bytes;
    std::int64_t time;   // of all runs that one eviction requires
    std::int32_t share;  // the share of that time that this gap pays, in kShares
  };
  static constexpr int kShareBits = 20;

  void collect_gaps(const Graph& graph, std::span<const std::int32_t> steps_before);
  std::vector<std::int64_t> times_of_drops(const Graph& graph) const;
  double value_at(std::span<const double> prices);
  double cost(const Gap& gap) const;

  std::vector<std::int64_t> excess_;  // for each step over the budget, the bytes over it
  std::vector<Gap> gaps_;
  std::vector<double> prices_, best_prices_, direction_, sums_, dropped_;
  double best_ = 0, stride_ = 1;
  std::int64_t steps_ = 0;
  int idle_ = 0, retreats_ = 0;
  bool finished_ = false;
};

}  // namespace lowtide::solve::bounds
