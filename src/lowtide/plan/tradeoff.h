// Time against memory: what a whole range of budgets costs, and which budget some overhead needs.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "lowtide/plan/outcome.h"
#include "lowtide/plan/terms.h"

namespace lowtide {

// One budget: the answer to the problem of least time within it. Histories are not kept.
struct TradeoffPoint {
  Bytes budget;
  Outcome outcome;
};

// By ascending budgets durations never rise, and neither do bounds: a plan for one budget is one
// for every larger, and what is proven of one holds for every smaller.
struct Tradeoff {
  Terms terms = {};
  Bytes own_peak;                     // of the graph in its own order
  std::vector<TradeoffPoint> points;  // ascending
  // The smallest budget for which a plan was found, which is that plan's peak.
  std::optional<TradeoffPoint> smallest = std::nullopt;
  Bytes floor = {};  // proven: no plan needs less
  StopReason stopped_by = StopReason::finished;
};

// The smallest budget for which a plan within the time limit was found.
struct Fit {
  Terms terms = {};
  Bytes own_peak;
  Ticks time_limit;
  std::optional<TradeoffPoint> point = std::nullopt;  // its budget is its plan's peak
  // Proven: within fewer bytes no plan is within the time limit. If `point` needs just these, no
  // smaller budget will do.
  Bytes floor = {};
  StopReason stopped_by = StopReason::finished;  // only if it is proven

  bool proven() const { return point && point->budget == floor; }
};

// Whether a budget lies among those of the points.
bool in_range(const Tradeoff& tradeoff, Bytes budget);
// The smallest peak of a plan that takes no longer than `base`, computing each op once.
std::optional<Bytes> least_without_overhead(const Tradeoff& tradeoff, Ticks base);

// Takes in a plan that was found since, where it is better; says whether it was. It must be a plan
// of the graph in that order, and cost that.
bool improve(Tradeoff& tradeoff, const Plan& plan, const Cost& cost, std::string_view found_by);
bool improve(Fit& fit, const Plan& plan, const Cost& cost, std::string_view found_by);

}  // namespace lowtide
