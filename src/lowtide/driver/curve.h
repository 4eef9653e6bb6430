// The trade-off curve: a range of budgets in one run. See curve.cpp.
#pragma once

#include <cstddef>
#include <functional>

#include "lowtide/driver/driver.h"
#include "lowtide/driver/sweep_settings.h"
#include "lowtide/plan/tradeoff.h"

namespace lowtide::driver {

// How far a curve is. Gaps are in points of overhead.
struct CurveProgress {
  std::size_t points = 0, planned = 0, settled = 0;
  double widest_gap = 0;
  Bytes smallest;                    // budget for which a plan is known
  std::function<Tradeoff()> so_far;  // for as long as the call
};

struct CurveRequest {
  Terms terms = {};
  Bytes from, to;
  std::size_t points = 16;  // evenly spaced, both ends included; fewer if there are fewer budgets
  SweepSettings settings;   // limits of the whole curve
  // At the start and after every round, on the caller's thread.
  std::function<void(const CurveProgress&)> watcher;
};

// Every plan is verified for its point. Without a time limit, the same for every number of threads.
// A solver that fails at one budget (InternalError) leaves a note in that point. InputError if
// `from` is beyond `to` or negative, for less than two points, and as solve() for the solver.
Tradeoff curve(const solve::SolverTable& solvers, const Graph& graph, const CurveRequest& request);

}  // namespace lowtide::driver
