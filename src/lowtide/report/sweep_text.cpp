#include "lowtide/report/sweep_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

bool differs(const std::vector<SweepLine>& lines, std::size_t setting) {
  return std::ranges::any_of(lines, [&](const SweepLine& line) {
    return line.given[setting] != lines.front().given[setting];
  });
}

std::string size_text(std::optional<std::int64_t> bytes) {
  return bytes ? bytes_text(Bytes(*bytes)) : "";
}
std::string share_text(std::optional<double> percent) {
  return percent ? percent_text(*percent) : "";
}

}  // namespace

std::string sweep_text(const std::vector<std::string>& settings,
                       const std::vector<SweepLine>& lines, const TerminalStyle& style) {
  if (lines.empty()) return {};
  std::vector<TableColumn> columns;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (i > 1 && !differs(lines, i)) continue;
    TableColumn column{settings[i]};
    column.flexible = i != 1;
    for (const SweepLine& line : lines) column.cells.push_back(line.given[i]);
    columns.push_back(std::move(column));
  }
  TableColumn bytes{"bytes", Align::right}, status{"status"}, peak{"peak", Align::right},
      overhead{"overhead", Align::right}, gap{"gap", Align::right};
  bytes.rank = 3, gap.rank = 2, peak.rank = 1;
  std::set<std::string> reasons;
  for (const SweepLine& line : lines) {
    bytes.cells.push_back(size_text(line.budget));
    status.cells.push_back(line.status);
    peak.cells.push_back(size_text(line.peak));
    overhead.cells.push_back(share_text(line.overhead));
    gap.cells.push_back(share_text(line.gap));
    if (line.status == "error") reasons.insert(line.reason);
  }
  for (TableColumn* column : {&bytes, &status, &peak, &overhead, &gap})
    columns.push_back(std::move(*column));
  std::string out = draw_table(std::move(columns), style);
  for (const std::string& reason : reasons) out += wrap("error: " + reason, style.width);
  return out;
}

}  // namespace lowtide::report
