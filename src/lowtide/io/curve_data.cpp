#include "lowtide/io/curve_data.h"

#include <cmath>
#include <optional>
#include <ranges>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lowtide/sim/simulate.h"
#include "lowtide/transforms/together.h"

namespace lowtide::io {

namespace {

using Json = nlohmann::ordered_json;

// A point's figures; absent: not known, or there is none.
struct Figures {
  double share = 0;  // of the baseline peak, per cent
  std::optional<std::int64_t> peak, taken, duration, bound;
  std::optional<double> overhead, bound_overhead, gap;
};

// base: the base duration.
Figures figures_of(Ticks base, Bytes own_peak, const TradeoffPoint& point) {
  const Outcome& outcome = point.outcome;
  Figures figures;
  figures.share = own_peak.count() == 0 ? 100
                                        : 100 * static_cast<double>(point.budget.count()) /
                                              static_cast<double>(own_peak.count());
  if (is_bounded(outcome, base)) {
    figures.bound = outcome.bound.duration.count();
    figures.bound_overhead = overhead_percent(outcome.bound.duration, base);
  }
  if (outcome.plan) {
    figures.peak = outcome.cost.peak.count();
    if (point.taken) figures.taken = point.taken->bytes.count();
    figures.duration = outcome.cost.duration.count();
    figures.overhead = overhead_percent(outcome.cost.duration, base);
    const double gap = gap_percent(outcome.cost.duration, outcome.bound.duration);
    if (std::isfinite(gap)) figures.gap = gap;
  }
  return figures;
}

template <class Value>
Json if_any(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json text_if_any(std::string_view text) { return text.empty() ? Json() : Json(text); }

Json host_budget_json(const Terms& terms) {
  return terms.host_budget ? Json(terms.host_budget->count()) : Json();
}

// `whole`: a Tradeoff or a Fit.
Json point_json(Ticks base, const auto& whole, const TradeoffPoint& point) {
  const Figures figures = figures_of(base, whole.own_peak, point);
  Json transforms = Json::array();
  if (point.outcome.plan)
    for (const auto some : together(point.outcome.plan->transforms))
      transforms.push_back(describe(some));
  Json json = {{"budget", point.budget.count()},
               {"share_percent", figures.share},
               {"status", to_string(point.outcome.status)},
               {"peak", if_any(figures.peak)},
               {"duration", if_any(figures.duration)},
               {"overhead_percent", if_any(figures.overhead)},
               {"bound", if_any(figures.bound)},
               {"bound_percent", if_any(figures.bound_overhead)},
               {"gap_percent", if_any(figures.gap)},
               {"link_price", if_any(point.outcome.link_price)},
               {"transforms", transforms},
               {"found_by", text_if_any(point.outcome.found_by)},
               {"reason", text_if_any(point.outcome.note)}};
  if (whole.footprint != Footprint::live)
    json[std::string(to_string(whole.footprint))] = if_any(figures.taken);
  return json;
}

// Of budgets that limit something else than live bytes.
void add_footprint(Json& json, const auto& whole) {
  if (whole.footprint == Footprint::live) return;
  json["footprint"] = to_string(whole.footprint);
  json["allocator"] = text_if_any(whole.allocator);
}

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string curve_json(const Graph& graph, const Tradeoff& curve, const RunFacts& facts) {
  const Ticks base = own_duration(graph);
  Json points = Json::array();
  for (const TradeoffPoint& point : std::views::reverse(curve.points))
    points.push_back(point_json(base, curve, point));
  Json json = {{"graph", graph.name()},
               {"order", to_string(curve.terms.order)},
               {"techniques", names_of(curve.terms)},
               {"host_budget", host_budget_json(curve.terms)},
               {"seed", facts.seed},
               {"base_duration", base.count()},
               {"own_peak", curve.own_peak.count()},
               {"points", points},
               {"smallest", curve.smallest ? point_json(base, curve, *curve.smallest) : Json()},
               {"floor", curve.floor.count()},
               {"stopped_by", to_string(curve.stopped_by)},
               {"time_s", facts.seconds}};
  add_footprint(json, curve);
  return line(json);
}

std::string fit_json(const Graph& graph, const Fit& fit, const RunFacts& facts,
                     std::string_view plan_file) {
  const Ticks base = own_duration(graph);
  Json json = {{"graph", graph.name()},
               {"order", to_string(fit.terms.order)},
               {"techniques", names_of(fit.terms)},
               {"host_budget", host_budget_json(fit.terms)},
               {"seed", facts.seed},
               {"base_duration", base.count()},
               {"own_peak", fit.own_peak.count()},
               {"time_limit", fit.time_limit.count()},
               {"found", fit.point.has_value()}};
  if (fit.point) json.update(point_json(base, fit, *fit.point));
  json["floor"] = fit.floor.count();
  json["smallest_proven"] = fit.proven();
  json["stopped_by"] = to_string(fit.stopped_by);
  json["time_s"] = facts.seconds;
  json["plan_file"] = text_if_any(plan_file);
  add_footprint(json, fit);
  return line(json);
}

std::string curve_csv(const Graph& graph, const Tradeoff& curve) {
  const Ticks base = own_duration(graph);
  const bool is_live = curve.footprint == Footprint::live;
  std::string out = fmt::format(
      "budget,share_percent,status,peak,duration,overhead_percent,bound,bound_percent{}\n",
      is_live ? "" : fmt::format(",{}", to_string(curve.footprint)));
  const auto text = [](const auto& value) { return value ? fmt::format("{}", *value) : ""; };
  const auto row = [&](const TradeoffPoint& point) {
    const Figures figures = figures_of(base, curve.own_peak, point);
    out += fmt::format("{},{},{},{},{},{},{},{}{}\n", point.budget.count(), figures.share,
                       to_string(point.outcome.status), text(figures.peak), text(figures.duration),
                       text(figures.overhead), text(figures.bound), text(figures.bound_overhead),
                       is_live ? "" : fmt::format(",{}", text(figures.taken)));
  };
  for (const TradeoffPoint& point : std::views::reverse(curve.points)) row(point);
  if (curve.smallest) row(*curve.smallest);
  return out;
}

}  // namespace lowtide::io
