// Plans that come after a trade-off was written down.
#include "lowtide/plan/tradeoff.h"

#include <doctest/doctest.h>

#include "support/print.h"

namespace lowtide {
namespace {

TradeoffPoint point(std::int64_t budget, std::int64_t bound, std::int64_t duration = 0) {
  TradeoffPoint point{.budget = Bytes(budget), .outcome = {}};
  point.outcome.bound.duration = Ticks(bound);
  if (duration == 0) return point;
  point.outcome.status = Status::feasible;
  point.outcome.plan = Plan{};
  point.outcome.cost = {Ticks(duration), Bytes(budget), {}};
  return point;
}

Cost cost(std::int64_t duration, std::int64_t peak) { return {Ticks(duration), Bytes(peak), {}}; }

TEST_CASE("tradeoff: a later plan replaces worse points") {
  Tradeoff curve;
  curve.points = {point(10, 30), point(20, 25), point(30, 20, 28)};
  curve.smallest = point(25, 22, 29);
  CHECK(improve(curve, {}, cost(25, 15), "later"));
  CHECK_FALSE(curve.points[0].outcome.plan.has_value());
  CHECK(curve.points[1].outcome.status == Status::optimal);
  CHECK(curve.points[2].outcome.status == Status::feasible);
  CHECK(curve.points[2].outcome.cost == cost(25, 15));
  CHECK(curve.points[2].outcome.found_by == "later");
  CHECK(curve.smallest->budget == Bytes(15));
  CHECK(curve.smallest->outcome.cost == cost(25, 15));
  CHECK_FALSE(improve(curve, {}, cost(25, 15), "again"));
  CHECK_FALSE(improve(curve, {}, cost(26, 16), "worse"));
  CHECK(improve(curve, {}, cost(24, 30), "for the largest alone"));
  CHECK(curve.points[1].outcome.cost == cost(25, 15));
}

TEST_CASE("fit: a later plan is used if it is smaller and short enough") {
  Fit fit;
  fit.time_limit = Ticks(30);
  CHECK_FALSE(improve(fit, {}, cost(20, 5), "before there is any"));
  fit.point = point(25, 22, 29);
  CHECK_FALSE(improve(fit, {}, cost(31, 5), "too long"));
  CHECK_FALSE(improve(fit, {}, cost(20, 25), "no less"));
  CHECK(improve(fit, {}, cost(30, 24), "less"));
  CHECK(fit.point->budget == Bytes(24));
  CHECK(fit.point->outcome.cost == cost(30, 24));
}

}  // namespace
}  // namespace lowtide
