// One row for each solver.
#include "lowtide/report/parts_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

std::string parts_text(std::span<const PortfolioPart> parts, Ticks base,
                       const TerminalStyle& style) {
  const bool timed = std::ranges::any_of(parts, [](const auto& part) { return part.seconds > 0; });
  TableColumn names{"solver"}, spent{timed ? "seconds" : "work", Align::right},
      plans{"plans", Align::right}, won{"less overhead", Align::right},
      bounds{"higher bound", Align::right};
  const auto share = [&](Ticks by) {
    return by == Ticks() ? std::string() : percent_text(overhead_percent(base + by, base));
  };
  for (const PortfolioPart& part : parts) {
    if (part.work == 0 && part.plans == 0) continue;
    names.cells.push_back(part.name);
    spent.cells.push_back(timed ? fmt::format("{:.3f}", part.seconds) : count_text(part.work));
    plans.cells.push_back(part.plans == 0 ? "" : count_text(part.plans));
    won.cells.push_back(share(part.won));
    bounds.cells.push_back(share(part.bound));
  }
  if (names.cells.empty()) return {};
  return draw_table(
      {std::move(names), std::move(spent), std::move(plans), std::move(won), std::move(bounds)},
      style);
}

}  // namespace lowtide::report
