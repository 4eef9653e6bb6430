// One call of a solver within `auto`: what it is asked, and what came of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lowtide/driver/auto/recipes.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

inline constexpr std::int64_t kMostWork = std::int64_t{1} << 40;  // of a task

// Of the search: which recipes the lane follows, by their places in the tables.
struct LaneChoice {
  std::size_t recipe, order;
};

struct Task {
  const solve::Solver* solver;
  std::int64_t work;  // at most
  double share = 1;   // of the time left, at most
  std::uint64_t seed = 0;
  int threads = 1;
  bool in_given_order = false;  // asked for the given order where the problem's is free
  bool without_link = false;    // asked for plans that transfer nothing
  bool repeats = false;         // the solver is asked again even if it has finished
  bool once = false;            // the solver is not asked again even if it has not finished
  std::optional<LaneChoice> lane = std::nullopt;
  OptionTexts options = {};

  // The result. Without an outcome the task had no time to begin.
  std::optional<Outcome> outcome = std::nullopt;
  std::string failure = {};  // what the solver threw; the outcome is what it had found by then
  std::int64_t work_done = 0;
  double seconds = 0;
  std::optional<Plan> smallest = std::nullopt, repair_start = std::nullopt;

  // Whether what it proves holds for the whole problem.
  bool proves() const { return !without_link && !in_given_order; }
};

}  // namespace lowtide::driver
