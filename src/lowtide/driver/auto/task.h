// One call of a solver within `auto`: its input and its result.
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

// The recipes of a lane, as indices into the tables; Choice::kNone if none suits it.
struct LaneChoice {
  std::size_t recipe, order;
};

struct Task {
  const solve::Solver* solver;
  std::int64_t work;  // at most
  double share = 1;   // at most, of the time left
  std::uint64_t seed = 0;
  int threads = 1;
  bool in_given_order = false;  // solves the problem in the given order, although its order is free
  bool without_link = false;    // solves the problem without its machine: no transfers
  bool repeats = false;         // the solver gets further tasks even if it has finished
  bool once = false;            // the solver gets no further task even if it has not finished
  std::optional<LaneChoice> lane = std::nullopt;
  OptionTexts options = {};

  // The result. A task without an outcome had no time to begin.
  std::optional<Outcome> outcome = std::nullopt;
  std::string failure = {};  // what the solver threw; `outcome` has the plans it offered before
  std::int64_t work_done = 0;
  double seconds = 0;
  std::optional<Plan> smallest = std::nullopt;      // the plan with the smallest peak
  std::optional<Plan> repair_start = std::nullopt;  // see solve::Context

  // Whether bounds of this task hold for the whole problem.
  bool proves() const { return !without_link && !in_given_order; }
};

}  // namespace lowtide::driver
