// The page is curve_page.html with the style, the scripts and the data put into it; see page.h.
#include "lowtide/report/curve_html.h"

#include <cstdint>

#include <nlohmann/json.hpp>

#include "lowtide/report/curve_text.h"
#include "lowtide/report/page.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_page.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestName = 160;  // characters

Json point_json(Ticks base, const TradeoffPoint& point) {
  const Outcome& outcome = point.outcome;
  const bool planned = outcome.plan.has_value();
  return {{"budget", point.budget.count()},
          {"status", to_string(outcome.status)},
          {"peak", planned ? Json(outcome.cost.peak.count()) : Json()},
          {"taken", planned && point.taken ? Json(point.taken->bytes.count()) : Json()},
          {"duration", planned ? Json(outcome.cost.duration.count()) : Json()},
          {"bound", is_bounded(outcome, base) ? Json(outcome.bound.duration.count()) : Json()},
          {"note", clean_text(outcome.note)}};
}

Json points_json(Ticks base, const Tradeoff& curve) {
  Json points = Json::array();
  for (const TradeoffPoint& point : curve.points) points.push_back(point_json(base, point));
  return points;
}

// The smallest found is a point like the others here.
Json beside_json(Ticks base, const Tradeoff& curve) {
  Json points = points_json(base, curve);
  if (curve.smallest) points.push_back(point_json(base, *curve.smallest));
  return {{"techniques", names_of(curve.terms.techniques)}, {"points", points}};
}

std::string data_of(const Graph& graph, const Tradeoff& curve, const Tradeoff* beside) {
  const Ticks base = own_duration(graph);
  const Json data = {{"name", shorten(graph.name(), kLongestName)},
                     {"tick", to_string(graph.tick())},
                     {"opCount", graph.op_count()},
                     {"tensorCount", graph.tensor_count()},
                     {"base", base.count()},
                     {"order", to_string(curve.terms.order)},
                     {"footprint", to_string(curve.footprint)},
                     {"allocator", curve.allocator},
                     {"ownPeak", curve.own_peak.count()},
                     {"floor", curve.floor.count()},
                     {"points", points_json(base, curve)},
                     {"smallest", curve.smallest ? point_json(base, *curve.smallest) : Json()},
                     {"techniques", names_of(curve.terms.techniques)},
                     {"beside", beside != nullptr ? beside_json(base, *beside) : Json()}};
  return data.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string html_curve(const Graph& graph, const Tradeoff& curve, const Tradeoff* beside) {
  const std::string name = graph.name().empty() ? "Graph" : shorten(graph.name(), kLongestName);
  return make_page({.title = name + ": overhead against memory",
                    .text = curve_text(graph, curve, TerminalStyle{.width = 100}),
                    .main = kCurveMain,
                    .style = std::string(kCurveStyle),
                    .data = data_of(graph, curve, beside),
                    .script = std::string(kCurveScript)});
}

}  // namespace lowtide::report
