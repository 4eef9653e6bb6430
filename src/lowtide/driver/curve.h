// The trade-off curve: a range of budgets in one run. See curve.cpp.
#pragma once

#include <cstddef>
#include <functional>

#include "lowtide/driver/driver.h"
#include "lowtide/driver/footprint.h"
#include "lowtide/driver/sweep_settings.h"
#include "lowtide/plan/tradeoff.h"

namespace lowtide::driver {

// The progress of a curve. Gaps are in points of overhead.
struct CurveProgress {
  std::size_t points = 0, planned = 0, settled = 0;
  double widest_gap = 0;
  Bytes smallest;                    // smallest budget with a plan
  std::function<Tradeoff()> so_far;  // valid during the call
};

struct CurveRequest {
  Terms terms = {};
  FootprintTerms footprint = {};  // what budgets limit
  Bytes from, to;
  std::size_t points = 16;  // evenly spaced, with both ends; fewer if the range has fewer budgets
  SweepSettings settings;   // limits: those of the whole curve
  // Called at the start and after every round, on the caller's thread.
  std::function<void(const CurveProgress&)> watcher;
};

// Every plan is verified for its point. Without a time limit the result does not depend on the
// number of threads. If the solver fails at one budget (InternalError), that point has a note.
// Throws InputError if `from` is larger than `to` or negative, for fewer than two points, and as
// solve() does for the solver.
Tradeoff curve(const solve::SolverTable& solvers, const Graph& graph, const CurveRequest& request);

}  // namespace lowtide::driver
