// The settings of a solve, and its answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::driver {

// Of one thread, approximately; used only to distinguish long runs from short ones.
inline constexpr double kWorkPerSecond = 2.5e6;

struct Request {
  std::string solver = "auto";
  LimitSettings limits;
  std::uint64_t seed = 0;
  int threads = 1;
  std::vector<std::pair<std::string, std::string>> options;  // of the solver
  // Best first. They may exceed the budget, and may be of other links: they are priced over the
  // problem's link. Plans that break another rule are dropped.
  std::vector<Plan> starts;
  Bound known;  // bounds proven before; zero if unknown
  solve::Watcher watcher;
};

struct Answer {
  solve::Support
      support;  // if not `yes`, the solver does not support the problem; `outcome` has no plan
  Outcome outcome;
  std::int64_t work = 0;  // as counted by the limits
  // The number of plans that the driver has verified: one for each run on a reduced graph, and the
  // plan of this answer for the problem's own graph.
  int verifications = 0;
  // Plans for solves with other budgets, not verified; see Context. `smallest` is set only if its
  // peak is smaller than that of the outcome's plan.
  std::optional<Plan> repair_start, smallest;
};

}  // namespace lowtide::driver
