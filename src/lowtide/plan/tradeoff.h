// The trade-off of time and memory: the cost of a range of budgets, and the budget for an overhead.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/plan/footprint.h"
#include "lowtide/plan/outcome.h"
#include "lowtide/plan/terms.h"

namespace lowtide {

// One budget: the answer to the problem of least time within it. Histories are not kept.
struct TradeoffPoint {
  Bytes budget;
  Outcome outcome;
  std::optional<Taken> taken = std::nullopt;  // by its plan, unless budgets limit live bytes

  // Of its plan: the smallest budget that it keeps.
  Bytes needs() const { return taken ? taken->bytes : outcome.cost.peak; }
};

// By ascending budgets, durations and bounds never rise: a plan for one budget is one for every
// larger budget, and a bound for one holds for every smaller one.
struct Tradeoff {
  Terms terms = {};
  Footprint footprint = Footprint::live;  // what budgets limit
  std::string allocator = {};             // PyTorch's settings; for `reserved`
  Bytes own_peak;                         // baseline peak
  std::vector<TradeoffPoint> points;      // ascending
  // The smallest budget for which a plan was found, which is what that plan needs.
  std::optional<TradeoffPoint> smallest = std::nullopt;
  Bytes floor = {};  // proven: no plan needs less
  StopReason stopped_by = StopReason::finished;
};

// The smallest budget for which a plan within the time limit was found.
struct Fit {
  Terms terms = {};
  Footprint footprint = Footprint::live;  // what the budget limits
  std::string allocator = {};             // PyTorch's settings; for `reserved`
  Bytes own_peak;
  Ticks time_limit;
  std::optional<TradeoffPoint> point = std::nullopt;  // its budget is what its plan needs
  // Proven: no plan within fewer bytes keeps the time limit. If `point` needs exactly this many,
  // its budget is the smallest.
  Bytes floor = {};
  StopReason stopped_by = StopReason::finished;  // finished only if it is proven

  bool proven() const { return point && point->budget == floor; }
};

// Whether a budget lies within the range of the points.
bool in_range(const Tradeoff& tradeoff, Bytes budget);
// The least that a plan without overhead needs; `base`: the base duration.
std::optional<Bytes> least_without_overhead(const Tradeoff& tradeoff, Ticks base);

// Adds a plan that was found later, if it improves a point; returns whether it does. It must be a
// plan of the graph in that order, with that cost. For budgets of live bytes.
bool improve(Tradeoff& tradeoff, const Plan& plan, const Cost& cost, std::string_view found_by);
bool improve(Fit& fit, const Plan& plan, const Cost& cost, std::string_view found_by);

}  // namespace lowtide
