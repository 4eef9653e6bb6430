// One call of a part of the portfolio. Private to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/plan/outcome.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

inline constexpr std::int64_t kMostWork = std::int64_t{1} << 40;  // of a task

// The best of some kind: a plan, or the one with the smallest peak.
struct PortfolioKept {
  std::optional<Plan> plan;
  Cost cost;                       // the duration of one over the budget is Ticks::max()
  void take(PortfolioKept other);  // if that is better
};

// With a context of its own: made, run (on any thread), then merged.
struct PortfolioTask {
  const solve::Solver* part;
  std::int64_t work;
  std::uint64_t seed;
  bool endless = false;       // is not asked whether it finished
  bool from_before = false;   // begins from the portfolio's best_elsewhere_
  bool without_link = false;  // asks about plans that transfer nothing: what it claims of others
                              // does not count
  bool from_swapped = false;  // begins from swapped_ or the graph's own plan
  bool hot = false;           // a lane that may keep nothing of its start
  double share = 1;           // of the time left
  int threads = 1;
  std::vector<std::pair<std::string, std::string>> options = {};
  std::optional<Outcome> outcome = std::nullopt;
  std::string failure = {};  // what the part threw; then the outcome is what it had found by then
  std::int64_t work_done = 0;
  double seconds = 0;
  std::optional<Plan> smallest = std::nullopt, repair_start = std::nullopt;

  bool claims() const { return !without_link; }
  PortfolioKept made() const {
    if (outcome->plan) return {outcome->plan, outcome->cost};
    return {smallest, {Ticks::max(), outcome->smallest_peak.value_or(Bytes::max()), {}}};
  }
};

}  // namespace lowtide::driver
