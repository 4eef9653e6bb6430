#include "lowtide/report/regions_text.h"

#include <vector>

#include <fmt/format.h>

#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

std::string regions_text(std::span<const RegionRow> rows, const TerminalStyle& style) {
  std::vector<TableColumn> columns = {{.title = "#", .align = Align::right},
                                      {.title = "region", .flexible = true},
                                      {.title = "ops", .align = Align::right, .rank = 2},
                                      {.title = "parts", .align = Align::right},
                                      {.title = "peak", .align = Align::right},
                                      {.title = "share", .align = Align::right, .rank = 1},
                                      {.title = "time", .align = Align::right},
                                      {.title = "along", .flexible = true, .rank = 3}};
  for (const RegionRow& row : rows) {
    const std::string cells[] = {fmt::format("{}", row.number),
                                 row.what,
                                 fmt::format("{}", row.ops),
                                 fmt::format("{}", row.parts),
                                 bytes_text(row.peak),
                                 fmt::format("{:.1f} %", 100 * row.share),
                                 fmt::format("{:+.2f} %", row.overhead),
                                 row.along};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return draw_table(std::move(columns), style);
}

}  // namespace lowtide::report
