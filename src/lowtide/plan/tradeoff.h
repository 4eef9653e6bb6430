// Time against memory: what a whole range of budgets costs, and which budget some overhead needs.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/problem.h"

namespace lowtide {

// One budget: the answer to the problem of least time within it. Histories are not kept.
struct TradeoffPoint {
  Bytes budget;
  Outcome outcome;
};

// By ascending budgets durations never rise, and neither do bounds: a plan for one budget is one
// for every larger, and what is proven of one holds for every smaller.
struct Tradeoff {
  Order order = Order::free;
  Bytes own_peak;                     // of the graph in its own order
  std::vector<TradeoffPoint> points;  // ascending
  // The smallest budget for which a plan was found, which is that plan's peak.
  std::optional<TradeoffPoint> smallest;
  Bytes floor;  // proven: no plan needs less
  StopReason stopped_by = StopReason::finished;
};

// The smallest budget for which a plan within the time limit was found.
struct Fit {
  Order order = Order::free;
  Bytes own_peak;
  Ticks time_limit;
  std::optional<TradeoffPoint> point;  // its budget is its plan's peak
  // Proven: within fewer bytes no plan is within the time limit. If `point` needs just these, no
  // smaller budget will do.
  Bytes floor;
  // `finished`: it is proven, or given up before the limit.
  StopReason stopped_by = StopReason::finished;

  bool proven() const { return point && point->budget == floor; }
};

}  // namespace lowtide
