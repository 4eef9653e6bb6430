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
  // `profile` as of own_profile. Linear.
  GapCover(const Problem& problem, std::span<const Bytes> profile);

  // So many steps of the subgradient, or fewer if stopped or nothing is gained any more. `target`
  // is where the bound might end, beside the base duration.
  void run(Ticks target, std::int64_t steps, Limits& limits);
  bool finished() const { return finished_; }

  // What the best prices prove beside the base duration, in integers alone. Linear.
  Ticks certified() const;
  // Some step is over the budget whatever is dropped.
  bool infeasible() const;

 private:
  struct Gap {
    std::int32_t from, past;  // of the steps over the budget
    std::int64_t bytes;
    std::int64_t time;   // of what must run again, all of it, for one drop
    std::int32_t share;  // of that time that this gap pays, in kShares
  };
  static constexpr int kShareBits = 20;

  void collect_gaps(const Graph& graph, std::span<const std::int32_t> steps_before);
  std::vector<std::int64_t> times_of_drops(const Graph& graph) const;
  double value_at(std::span<const double> prices);
  double cost(const Gap& gap) const;

  std::vector<std::int64_t> excess_;  // bytes over the budget, of the steps that are over it
  std::vector<Gap> gaps_;
  std::vector<double> prices_, best_prices_, direction_, sums_, dropped_;
  double best_ = 0, stride_ = 1;
  std::int64_t steps_ = 0;
  int idle_ = 0, retreats_ = 0;
  bool finished_ = false;
};

}  // namespace lowtide::solve::bounds
