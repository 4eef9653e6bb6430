// Tables that fit the width of a terminal. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/report/plot.h"
#include "lowtide/report/plot_line.h"
#include "lowtide/report/plot_text.h"

namespace lowtide::report {

enum class Align : std::uint8_t { left, right };

struct TableColumn {
  std::string title;
  Align align = Align::left;
  bool flexible = false;  // its text may be shortened
  int rank = 0;           // the columns of the highest rank above 0 are dropped first
  Ink ink = Ink::plain;
  std::vector<std::string> cells = {};
};

// A line of titles (if any column has one), then the cells, all indented by two columns. All
// columns must have the same number of cells.
std::string draw_table(std::vector<TableColumn> columns, const TerminalStyle& style);

// `share` (0 to 1) of `columns` columns.
std::string share_bar(double share, std::size_t columns, bool unicode);

}  // namespace lowtide::report
