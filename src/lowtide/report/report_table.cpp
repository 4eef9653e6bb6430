// Fixed columns take what they need, flexible ones share the rest: the narrow ones are served
// first, so that a short name leaves its room to a long one.
#include "lowtide/report/report_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace lowtide::report {

namespace {

constexpr std::size_t kIndent = 2, kGap = 2;
constexpr std::size_t kLeastFlexible = 10;

std::size_t needs(const TableColumn& column) {
  std::size_t most = columns_of(column.title);
  for (const std::string& cell : column.cells) most = std::max(most, columns_of(cell));
  return most;
}

// The columns' widths, or nothing if the flexible ones would get too little.
std::vector<std::size_t> share_out(const std::vector<TableColumn>& columns, std::size_t width) {
  std::vector<std::size_t> widths;
  std::vector<std::size_t> flexible;
  std::size_t used = kIndent + (columns.size() - 1) * kGap;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(needs(columns[i]));
    if (columns[i].flexible)
      flexible.push_back(i);
    else
      used += widths[i];
  }
  std::sort(flexible.begin(), flexible.end(),
            [&](std::size_t a, std::size_t b) { return widths[a] < widths[b]; });
  for (std::size_t served = 0; served < flexible.size(); ++served) {
    std::size_t& wanted = widths[flexible[served]];
    const std::size_t share = used < width ? (width - used) / (flexible.size() - served) : 0;
    if (share < std::min(wanted, kLeastFlexible)) return {};
    wanted = std::min(wanted, share);
    used += wanted;
  }
  if (used > width) return {};
  return widths;
}

}  // namespace

std::string draw_table(std::vector<TableColumn> columns, const TerminalStyle& style) {
  const std::size_t width = std::max<std::size_t>(style.width, 40);
  for (TableColumn& column : columns)
    for (std::string& cell : column.cells) cell = clean_text(cell, style.unicode);
  std::vector<std::size_t> widths = share_out(columns, width);
  while (widths.empty()) {
    const auto least = std::max_element(
        columns.begin(), columns.end(),
        [](const TableColumn& a, const TableColumn& b) { return a.rank < b.rank; });
    if (least->rank == 0) {
      // As far as it goes, from the left.
      std::size_t left = width - kIndent;
      for (TableColumn& column : columns) {
        widths.push_back(std::min(needs(column), left));
        left -= std::min(left, widths.back() + kGap);
      }
      break;
    }
    columns.erase(least);
    widths = share_out(columns, width);
  }

  // Spaces are kept back until something follows, so that no line ends in them.
  const auto row = [&](auto cell_of, auto ink_of) {
    std::string line;
    std::size_t spaces = kIndent;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string text = shorten(cell_of(columns[i]), widths[i], style.unicode);
      const std::size_t padding = widths[i] - columns_of(text);
      if (columns[i].align == Align::right) spaces += padding;
      if (!text.empty()) {
        line += std::string(spaces, ' ') + inked(text, ink_of(columns[i]), style.colour);
        spaces = 0;
      }
      if (columns[i].align == Align::left) spaces += padding;
      spaces += kGap;
    }
    return line.empty() ? line : line + '\n';
  };
  std::string out = row([](const TableColumn& column) { return column.title; },
                        [](const TableColumn&) { return Ink::faint; });
  for (std::size_t i = 0; i < columns.front().cells.size(); ++i)
    out += row([i](const TableColumn& column) { return column.cells[i]; },
               [](const TableColumn& column) { return column.ink; });
  return out;
}

std::string share_bar(double share, std::size_t columns, bool unicode) {
  constexpr std::array<const char*, 8> kParts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(
      std::ceil(std::clamp(share, 0.0, 1.0) * 8 * static_cast<double>(columns) - 1e-9));
  std::string bar;
  for (std::size_t i = 0; i < eighths / 8; ++i) bar += unicode ? "█" : "#";
  if (eighths % 8 != 0) bar += unicode ? kParts.at(eighths % 8) : "#";
  return bar;
}

}  // namespace lowtide::report
