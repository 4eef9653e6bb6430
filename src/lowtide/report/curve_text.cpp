#include "lowtide/report/curve_text.h"

#include <algorithm>
#include <ranges>
#include <string_view>

#include <fmt/format.h>

#include "lowtide/report/curve_plot.h"
#include "lowtide/report/graph_text.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/transforms_text.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::report {

namespace {

std::string share_text(Bytes part, Bytes whole, std::string_view space = " ") {
  if (whole.count() == 0) return fmt::format("100.0{}%", space);
  return fmt::format("{:.1f}{}%",
                     100 * static_cast<double>(part.count()) / static_cast<double>(whole.count()),
                     space);
}

std::string head(const Graph& graph, const TerminalStyle& style) {
  return fmt::format("{:<10} {}\n", "graph", graph_text(graph, style.width - 11, style.unicode));
}

std::string_view ending_of(const Fit& fit) {
  if (fit.proven()) return "proven: no smaller budget has such a plan";
  switch (fit.stopped_by) {
    case StopReason::deadline: return "not proven the smallest; stopped by the time limit";
    case StopReason::work_limit: return "not proven the smallest; stopped by the work limit";
    case StopReason::cancelled: return "not proven the smallest; interrupted";
    case StopReason::finished:
    case StopReason::gave_up: break;
  }
  return "not proven the smallest; gave up before the limit";
}

// A column that a curve of live bytes does not have.
std::string taken_column(const Tradeoff& curve, std::string_view text) {
  return curve.footprint == Footprint::live ? "" : fmt::format(" {:>10}", text);
}

// Of what budgets limit, if that is not live bytes; `whole`: a Tradeoff or a Fit.
std::string footprint_row(const auto& whole) {
  if (whole.footprint == Footprint::live) return {};
  const bool is_arena = whole.footprint == Footprint::arena;
  std::string settings = whole.allocator.empty() ? "" : fmt::format(" with {}", whole.allocator);
  return fmt::format("{:<10} {}: budgets limit {}\n", "footprint", to_string(whole.footprint),
                     is_arena ? "the arena of planned offsets"
                              : "what PyTorch's caching allocator takes" + settings);
}

std::string table_row(Ticks base, const Tradeoff& curve, const TradeoffPoint& point) {
  const Outcome& outcome = point.outcome;
  std::string overhead = "-", bound = "-", peak = "-", taken = "-";
  if (outcome.plan) {
    overhead = percent_text(overhead_percent(outcome.cost.duration, base));
    peak = bytes_text(outcome.cost.peak);
    if (point.taken) taken = bytes_text(point.taken->bytes);
  }
  if (is_bounded(outcome, base))
    bound = percent_text(overhead_percent(outcome.bound.duration, base));
  return fmt::format("{:>10} {:>8} {:>11} {:>10} {:>10}{}  {}\n", bytes_text(point.budget),
                     share_text(point.budget, curve.own_peak), overhead, bound, peak,
                     taken_column(curve, taken), to_string(outcome.status));
}

}  // namespace

std::string curve_text(const Graph& graph, const Tradeoff& curve, const TerminalStyle& style) {
  const Ticks base = own_duration(graph);
  std::string out = head(graph, style);
  out += fmt::format("{:<10} {}, the peak without a plan\n", "baseline",
                     exact_bytes_text(curve.own_peak));
  out += footprint_row(curve);
  const std::string plot = plot_curve(graph, curve, style);
  if (!plot.empty()) out += "\n" + plot;
  out += fmt::format("\n{:>10} {:>8} {:>11} {:>10} {:>10}{}  {}\n", "budget", "share", "overhead",
                     "bound", "peak", taken_column(curve, to_string(curve.footprint)), "status");
  for (const TradeoffPoint& point : std::views::reverse(curve.points))
    out += table_row(base, curve, point);
  out += "\n";
  for (const TradeoffPoint& point : std::views::reverse(curve.points))
    if (!point.outcome.note.empty() && point.outcome.status == Status::unknown)
      out +=
          wrap(fmt::format("{:<10} {}: {}", "note", bytes_text(point.budget), point.outcome.note),
               style.width, style.unicode);
  // All points with a plan have the same note.
  const auto noted = std::ranges::find_if(curve.points, [](const TradeoffPoint& point) {
    return point.outcome.plan && !point.outcome.note.empty();
  });
  if (noted != curve.points.end())
    out += wrap(fmt::format("{:<10} {}", "note", noted->outcome.note), style.width, style.unicode);
  if (const auto least = least_without_overhead(curve, base))
    out += fmt::format("{:<10} {}, {}: the smallest {} found without overhead\n", "full speed",
                       exact_bytes_text(*least), share_text(*least, curve.own_peak),
                       curve.footprint == Footprint::live ? "peak" : "footprint");
  if (curve.smallest) {
    const Bytes budget = curve.smallest->budget;
    const Ticks duration = curve.smallest->outcome.cost.duration;
    out += fmt::format("{:<10} {}, {}, overhead {}{}\n", "smallest", exact_bytes_text(budget),
                       share_text(budget, curve.own_peak),
                       percent_text(overhead_percent(duration, base)),
                       in_range(curve, budget)                ? ""
                       : budget < curve.points.front().budget ? "; below this range"
                                                              : "; above this range");
  }
  out +=
      fmt::format("{:<10} no plan can need less than {}\n", "floor", exact_bytes_text(curve.floor));
  const auto impossible = std::ranges::count_if(curve.points, [](const TradeoffPoint& point) {
    return point.outcome.status == Status::infeasible;
  });
  if (impossible > 1 && curve.smallest)
    out += fmt::format("{:<10} {} of {} points are below it; --from {} leaves them out\n", "note",
                       impossible, curve.points.size(),
                       share_text(curve.smallest->budget, curve.own_peak, ""));
  return out;
}

std::string fit_text(const Graph& graph, const Fit& fit, const TerminalStyle& style) {
  const Ticks base = own_duration(graph);
  std::string out = head(graph, style);
  const auto row = [&](std::string_view key, std::string_view value) {
    out += fmt::format("{:<10} {}\n", key, value);
  };
  row("baseline", exact_bytes_text(fit.own_peak) + ", the peak without a plan");
  out += footprint_row(fit);
  if (fit.point) {
    const Outcome& outcome = fit.point->outcome;
    row("budget", fmt::format("{}, {} of it", exact_bytes_text(fit.point->budget),
                              share_text(fit.point->budget, fit.own_peak)));
    if (fit.footprint != Footprint::live) row("peak", exact_bytes_text(outcome.cost.peak));
    if (outcome.plan)
      for (const TransformEffect& effect : effects_of(graph, outcome.plan->transforms))
        row("transform", effect_text(effect, base));
    if (base.count() == 0)
      row("overhead", "the graph has no durations: all plans are equally fast");
    else
      row("overhead", fmt::format("{} (allowed: {})",
                                  percent_text(overhead_percent(outcome.cost.duration, base)),
                                  percent_text(overhead_percent(fit.time_limit, base))));
    if (base.count() > 0 && is_bounded(outcome, base))
      row("bound", fmt::format("{}: no plan for this budget has less",
                               percent_text(overhead_percent(outcome.bound.duration, base))));
  } else {
    row("budget", "no plan was found");
  }
  row("status", ending_of(fit));
  if (fit.proven())
    row("too small", "every smaller budget (proven)");
  else
    row("too small", fmt::format("below {} (proven)", exact_bytes_text(fit.floor)));
  return out;
}

}  // namespace lowtide::report
