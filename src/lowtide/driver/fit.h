// The smallest budget for some overhead. See fit.cpp.
#pragma once

#include <functional>

#include "lowtide/driver/driver.h"
#include "lowtide/driver/footprint.h"
#include "lowtide/driver/sweep_settings.h"
#include "lowtide/plan/tradeoff.h"

namespace lowtide::driver {

// The progress of a fit. Between floor and budget nothing is known.
struct FitProgress {
  Bytes floor;                  // no such plan exists that needs less
  Bytes budget;                 // a plan that needs so much is known
  std::function<Fit()> so_far;  // valid during the call
};

struct FitRequest {
  Terms terms = {};
  FootprintTerms footprint = {};  // what the budget limits
  Ticks time_limit;               // of the plan
  SweepSettings settings;
  // Called at the start and after every round, on the caller's thread.
  std::function<void(const FitProgress&)> watcher;
};

// There is always a plan unless the time limit is below the base duration. Otherwise like curve().
Fit fit(const solve::SolverTable& solvers, const Graph& graph, const FitRequest& request);

}  // namespace lowtide::driver
