// Ops are gathered by their origins, numbers aside: the layers of a network are one row.
#include "lowtide/report/reach_text.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lowtide/graph/origin.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// Rounded down, so that 100 % is all of it.
std::string share_text(std::int64_t part, std::int64_t whole) {
  if (part == whole) return "100 %";
  return fmt::format("{:.1f} %",
                     static_cast<double>(static_cast<int>(10 * percent(part, whole))) / 10);
}

std::string of_text(std::string_view what) {
  return what.empty() ? std::string("(no module)") : std::string(what);
}

std::string module_table(const ReachSummary& summary, const TerminalStyle& style) {
  TableColumn names{.title = "module", .flexible = true}, ops{"ops", Align::right},
      carried{"carried", Align::right}, stopped{"stopped", Align::right},
      bytes{.title = "bytes", .align = Align::right, .rank = 1}, share{"carried", Align::right};
  for (const ReachedModule& module : summary.modules) {
    names.cells.push_back(of_text(module.origin));
    ops.cells.push_back(count_text(static_cast<std::int64_t>(module.ops)));
    carried.cells.push_back(count_text(static_cast<std::int64_t>(module.carried)));
    stopped.cells.push_back(
        module.stopped == 0 ? "" : count_text(static_cast<std::int64_t>(module.stopped)));
    bytes.cells.push_back(bytes_text(module.bytes));
    share.cells.push_back(share_text(module.carried_bytes.count(), module.bytes.count()));
  }
  return draw_table({std::move(names), std::move(ops), std::move(carried), std::move(stopped),
                     std::move(bytes), std::move(share)},
                    style);
}

// Reasons say the most and are the longest, so they have lines of their own.
std::string stop_list(const ReachSummary& summary, const TerminalStyle& style) {
  const std::size_t width = std::max<std::size_t>(style.width, 40);
  std::string text = "Stopped\n";
  for (const StopsAlike& stop : summary.stops) {
    const std::string where = stop.origin.empty() ? "" : ", in " + stop.origin;
    const std::string what = fmt::format(
        "  {:>5}  {}{}", count_text(static_cast<std::int64_t>(stop.ops.size())), stop.kind, where);
    text += shorten(what, width, style.unicode) + "\n";
    text += shorten("         " + stop.reason, width, style.unicode) + "\n";
  }
  return text;
}

}  // namespace

ReachSummary summarize(const Graph& graph, const dimensions::Reach& reach) {
  ReachSummary summary;
  std::map<std::string, std::size_t> modules;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> stops;
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    const std::string origin = origin_pattern(op.origin);
    const auto [at, is_new] = modules.emplace(origin, summary.modules.size());
    if (is_new) summary.modules.push_back({.origin = origin});
    Bytes made;
    for (const TensorId tensor : graph.outputs(id)) made += graph.bytes(tensor);
    const bool carries = reach.carries[id.index()].has_value();
    for (ReachedModule* module : {&summary.all, &summary.modules[at->second]}) {
      ++module->ops;
      module->bytes += made;
      if (carries) ++module->carried, module->carried_bytes += made;
      if (reach.stops[id.index()]) ++module->stopped;
    }
    if (!reach.stops[id.index()]) continue;
    const std::string& reason = reach.stops[id.index()]->reason;
    const auto [alike, is_first] =
        stops.emplace(std::tuple(origin, op.kind, reason), summary.stops.size());
    if (is_first) summary.stops.push_back({origin, op.kind, reason, {}});
    summary.stops[alike->second].ops.push_back(id);
  }
  std::ranges::stable_sort(summary.stops, std::ranges::greater(),
                           [](const StopsAlike& stop) { return stop.ops.size(); });
  return summary;
}

std::string reach_text(const Graph& graph, const std::vector<std::string>& axes,
                       const ReachSummary& summary, const TerminalStyle& style) {
  const ReachedModule& all = summary.all;
  std::string text =
      fmt::format("graph      {}\naxis       {}\n", graph.name(), fmt::join(axes, ", "));
  text += fmt::format(
      "carried    {} of {} ops ({}), which make {} of {} ({})\n",
      count_text(static_cast<std::int64_t>(all.carried)),
      count_text(static_cast<std::int64_t>(all.ops)),
      share_text(static_cast<std::int64_t>(all.carried), static_cast<std::int64_t>(all.ops)),
      bytes_text(all.carried_bytes), bytes_text(all.bytes),
      share_text(all.carried_bytes.count(), all.bytes.count()));
  text += fmt::format("stopped    {} ops\n\n", count_text(static_cast<std::int64_t>(all.stopped)));
  text += module_table(summary, style);
  if (!summary.stops.empty()) text += "\n" + stop_list(summary, style);
  return text;
}

}  // namespace lowtide::report
