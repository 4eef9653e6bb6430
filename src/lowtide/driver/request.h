// How a problem is to be solved, and what comes back.
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

// Of a thread, about; only to tell long runs from short ones.
inline constexpr double kWorkPerSecond = 2.5e6;

struct Request {
  std::string solver = "auto";
  LimitSettings limits;
  std::uint64_t seed = 0;
  int threads = 1;
  std::vector<std::pair<std::string, std::string>> options;  // of the solver
  // Best first. They may be over the budget and of other links, of which they take the problem's;
  // those that break another rule are left out.
  std::vector<Plan> starts;
  Bound known;  // proven of the problem before; zero if nothing is
  solve::Watcher watcher;
};

struct Answer {
  solve::Support
      support;  // if not `yes`, the solver does not take the problem; `outcome` has no plan
  Outcome outcome;
  std::int64_t work = 0;  // done, of what the limits count
  // How many plans the driver has verified: one of each run on a reduced graph, for that graph, and
  // the plan of this answer for the problem's own graph.
  int verifications = 0;
  // Of use to solves for other budgets, not verified; see Context. `smallest` only if it is smaller
  // than the outcome's plan.
  std::optional<Plan> repair_start, smallest;
};

}  // namespace lowtide::driver
