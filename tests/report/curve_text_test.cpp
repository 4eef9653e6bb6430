// Curves and fits by hand: what is drawn, and what is said of it.
#include "lowtide/report/curve_text.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "lowtide/report/curve_html.h"

#include "support/sketch.h"

namespace lowtide {
namespace {

Graph graph_of(std::int64_t ticks) { return Sketch({4}).op({}, {0}, ticks).keep({0}).graph(); }

TradeoffPoint point(std::int64_t budget, std::int64_t bound, std::int64_t peak = 0,
                    std::int64_t duration = 0) {
  TradeoffPoint point{.budget = Bytes(budget), .outcome = {}};
  Outcome& outcome = point.outcome;
  outcome.bound.duration = Ticks(bound);
  if (peak == 0) return point;
  outcome.status = bound == duration ? Status::optimal : Status::feasible;
  outcome.plan = Plan{};
  outcome.cost = {Ticks(duration), Bytes(peak), {}};
  return point;
}

bool has(std::string_view text, std::string_view words) {
  CAPTURE(text);
  return text.find(words) != std::string_view::npos;
}

// The lines between the head and the table.
std::string plot_in(const std::string& text) {
  const std::size_t from = text.find("\n\n") + 2;
  return text.substr(from, text.find("\n\n", from) - from);
}

TEST_CASE("curve text: the smallest budget without overhead is a plan's peak") {
  Tradeoff curve{.own_peak = Bytes(1000), .points = {point(500, 100, 480, 150)}};
  curve.points.push_back(point(1000, 100, 700, 100));
  curve.smallest = curve.points[0];
  const std::string text = report::curve_text(graph_of(100), curve, {});
  CHECK(has(text, "full speed 700 B, 70.0 %"));
  curve.points.pop_back();
  CHECK_FALSE(has(report::curve_text(graph_of(100), curve, {}), "full speed"));
}

TEST_CASE("curve text: overheads below 0 are drawn below 0") {
  // Plans that hide more of the network than the given order.
  const Tradeoff curve{.own_peak = Bytes(1000),
                       .points = {point(500, 0, 480, 90), point(1000, 50, 700, 60)}};
  const std::string plot = plot_in(report::curve_text(graph_of(100), curve, {}));
  CHECK(has(plot, "-40 %"));
  CHECK(has(plot, " 0 %"));
  const Tradeoff all_below{.own_peak = Bytes(1000), .points = {point(500, 50, 480, 60)}};
  CHECK(has(plot_in(report::curve_text(graph_of(100), all_below, {})), " 0 %"));
}

TEST_CASE("curve text: a smallest budget outside of the range is printed but not drawn") {
  Tradeoff curve{.own_peak = Bytes(1000),
                 .points = {point(600, 100, 590, 120), point(700, 100, 700, 110)}};
  const std::string alone = plot_in(report::curve_text(graph_of(100), curve, {}));
  curve.smallest = point(200, 100, 200, 300);
  const std::string below = report::curve_text(graph_of(100), curve, {});
  CHECK(plot_in(below) == alone);
  CHECK(has(below, "200 B, 20.0 %, overhead 200.00 %; below this range"));
  curve.smallest = point(650, 100, 650, 115);
  const std::string within = report::curve_text(graph_of(100), curve, {});
  CHECK(plot_in(within) != alone);
  CHECK_FALSE(has(within, "this range"));
  const std::string page = report::html_curve(graph_of(100), curve);
  CHECK(has(page, "inRange"));
}

TEST_CASE("curve page: another curve beside it has its points and its techniques") {
  Tradeoff curve{.own_peak = Bytes(1000), .points = {point(500, 100, 480, 150)}};
  Tradeoff beside = curve;
  beside.smallest = point(300, 100, 290, 170);
  curve.terms.techniques.split = true;
  const std::string alone = report::html_curve(graph_of(100), curve);
  CHECK(has(alone, "\"beside\":null"));
  const std::string page = report::html_curve(graph_of(100), curve, &beside);
  CHECK(has(page, "\"beside\":{\"techniques\":[\"recompute\",\"in_place\",\"offload\"]"));
  CHECK(has(page, "\"peak\":290"));
}

TEST_CASE("curve text: without a plan in the range the bounds are drawn and explained") {
  Tradeoff curve{.own_peak = Bytes(1000),
                 .points = {point(300, 0), point(400, 160), point(500, 150)},
                 .smallest = point(600, 100, 600, 140),
                 .floor = Bytes(350)};
  curve.points[0].outcome.status = Status::infeasible;
  const std::string text = report::curve_text(graph_of(100), curve, {});
  for (const char* words : {"no plan has so little", "no plan fits", "; above this range"})
    CHECK(has(text, words));
  CHECK_FALSE(has(text, "overhead of the plan"));
  curve = {.own_peak = Bytes(1000), .points = {point(300, 100), point(500, 100)}};
  CHECK_FALSE(has(report::curve_text(graph_of(100), curve, {}), "no plan has so little"));
}

TEST_CASE("fit text: how it ended, and graphs without times") {
  Fit fit{.own_peak = Bytes(1000), .time_limit = Ticks(105)};
  fit.point = point(700, 102, 700, 104);
  fit.floor = Bytes(600);
  const auto said = [&](std::int64_t ticks = 100) {
    return report::fit_text(graph_of(ticks), fit, {});
  };
  CHECK(has(said(), "4.00 % (allowed: 5.00 %)"));
  CHECK(has(said(), "gave up"));
  fit.stopped_by = StopReason::deadline;
  CHECK(has(said(), "stopped by the time limit"));
  fit.stopped_by = StopReason::cancelled;
  CHECK(has(said(), "interrupted"));
  fit.floor = Bytes(700);
  CHECK(has(said(), "proven: no smaller budget has such a plan"));
  CHECK_FALSE(has(said(), "interrupted"));
  CHECK(has(said(0), "the graph has no durations"));
  CHECK_FALSE(has(said(0), "allowed"));
}

}  // namespace
}  // namespace lowtide
