// The smallest budget for some overhead. See fit.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/driver.h"
#include "lowtide/driver/sweep_settings.h"
#include "lowtide/plan/tradeoff.h"

namespace lowtide::driver {

// Between the two, nothing is known.
struct FitProgress {
  Bytes floor;                  // within fewer bytes there is no such plan
  Bytes budget;                 // within these there is one
  std::function<Fit()> so_far;  // for as long as the call
};

struct FitRequest {
  Terms terms = {};
  Ticks time_limit;  // of the plan
  SweepSettings settings;
  // At the start and after every round, on the caller's thread.
  std::function<void(const FitProgress&)> watcher;
};

// There is always a plan unless the time limit is below the graph's total time. Otherwise as
// curve().
Fit fit(const solve::SolverTable& solvers, const Graph& graph, const FitRequest& request);

}  // namespace lowtide::driver
