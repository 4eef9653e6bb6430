// A grid of cells, painted back to front: the run before, the area, the budget, the marks.
//
// A plan that keeps its budget never reaches the row in which the budget is drawn (see Scale), so
// the line stays visible along a plan that uses all there is.
#include "lowtide/report/plot.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "lowtide/report/plot_line.h"
#include "lowtide/report/plot_scale.h"
#include "lowtide/report/plot_text.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

constexpr std::int64_t kLevels = Scale::kLevels;

struct Glyphs {
  std::array<std::string_view, kLevels + 1> area, again;  // by level
  std::string_view before, budget, peak, side, tick_left, corner, bottom, tick_below, wait;
};

constexpr Glyphs kUnicode{{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
                          {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
                          "░",
                          "▁",
                          "▼",
                          "│",
                          "┤",
                          "└",
                          "─",
                          "┬",
                          "×"};
constexpr Glyphs kAscii{{" ", "_", "_", "_", "_", "#", "#", "#", "#"},
                        {" ", ".", ".", ":", ":", "+", "+", "#", "#"},
                        ".",
                        "-",
                        "v",
                        "|",
                        "+",
                        "+",
                        "-",
                        "+",
                        "x"};

class Plotter {
 public:
  Plotter(const MemoryPlot& plot, const TerminalStyle& style);
  std::string draw();

 private:
  struct Label {
    std::size_t row;
    std::string text;
    Ink ink;
  };
  void label_rows();
  void paint(const MemoryProfile& profile, bool as_area);
  void paint_budget();
  void paint_peak(const MemoryProfile& profile, Ink mark, Ink value);
  std::string rows() const;
  struct Mark {
    std::size_t column;
    std::string label;
  };
  std::string steps() const;
  std::string times() const;
  std::string axis(std::span<const Mark> marks, const std::string& end) const;
  std::string recomputed() const;
  std::string lanes() const;
  std::string legend() const;
  Line& line_at(std::size_t row) { return grid_[row]; }

  const MemoryPlot& plot_;
  const bool colour_;
  const Glyphs& glyphs_;
  const std::size_t width_;
  Scale scale_;
  std::vector<Label> labels_;
  std::size_t gutter_ = 0;  // columns to the left of the axis
  Columns columns_;
  std::vector<Line> grid_;  // by row, from the bottom
};

Plotter::Plotter(const MemoryPlot& plot, const TerminalStyle& style)
    : plot_(plot),
      colour_(style.colour),
      glyphs_(style.unicode ? kUnicode : kAscii),
      width_(std::max<std::size_t>(style.width, 40)) {
  Bytes most = peak_of(plot.run);
  std::size_t steps = std::max<std::size_t>(plot.run.live.size(), 1);
  if (plot.before) {
    most = std::max(most, peak_of(*plot.before));
    steps = std::max(steps, plot.before->live.size());
  }
  scale_ = Scale(most, plot.budget, std::max<std::size_t>(style.height, 4));
  label_rows();
  columns_ = {steps, width_ - gutter_ - 1};
  grid_.assign(scale_.rows(), Line(columns_.columns));
}

std::string Plotter::draw() {
  if (plot_.before) paint(*plot_.before, false);
  paint(plot_.run, true);
  paint_budget();
  if (plot_.before) paint_peak(*plot_.before, Ink::before, Ink::plain);
  paint_peak(plot_.run, Ink::run, Ink::strong);
  return rows() + (plot_.time ? times() : steps()) + recomputed() + lanes() + legend();
}

void Plotter::label_rows() {
  for (Scale::Tick& tick : scale_.ticks()) {
    const auto budget = scale_.budget_row();
    if (budget && tick.row + 1 >= *budget && tick.row <= *budget + 1 && tick.row > 0) continue;
    labels_.push_back({tick.row, std::move(tick.label), Ink::faint});
  }
  if (scale_.budget_row())
    labels_.push_back({*scale_.budget_row(), bytes_text(*plot_.budget), Ink::budget});
  for (const Label& label : labels_) gutter_ = std::max(gutter_, label.text.size() + 1);
  if (plot_.time)
    for (const PlotLane& lane : plot_.time->lanes)
      gutter_ = std::max(gutter_, lane.name.size() + 1);
}

void Plotter::paint(const MemoryProfile& profile, bool as_area) {
  for (std::size_t column = 0; column < columns_.columns; ++column) {
    const auto most = most_in(profile, columns_.first(column), columns_.last(column));
    if (!most) break;
    std::int64_t level = scale_.level(*most);
    for (std::size_t row = 0; level > 0; ++row, level -= kLevels) {
      const auto filled = static_cast<std::size_t>(std::min(level, kLevels));
      if (as_area)
        line_at(row).put(column, glyphs_.area[filled], Ink::run);
      else
        line_at(row).put(column, glyphs_.before, Ink::before);
    }
  }
}

void Plotter::paint_budget() {
  if (!scale_.budget_row()) return;
  const auto covered = static_cast<std::int64_t>(*scale_.budget_row()) * kLevels;
  for (std::size_t column = 0; column < columns_.columns; ++column) {
    const auto most = most_in(plot_.run, columns_.first(column), columns_.last(column));
    if (!most || scale_.level(*most) <= covered)
      line_at(*scale_.budget_row()).put(column, glyphs_.budget, Ink::budget);
  }
}

// Above the column of the peak, with its bytes to the right, or to the left where no room is.
void Plotter::paint_peak(const MemoryProfile& profile, Ink mark, Ink value) {
  const Bytes peak = peak_of(profile);
  const auto row = static_cast<std::size_t>((scale_.level(peak) + kLevels - 1) / kLevels);
  const auto step =
      std::find(profile.live.begin(), profile.live.end(), peak) - profile.live.begin();
  const std::size_t column =
      peak == profile.start ? 0 : columns_.column_of(static_cast<std::size_t>(step));
  const std::string text = " " + bytes_text(peak) + " ";
  const bool right = column + text.size() < columns_.columns + 1;
  line_at(row).write(right ? column + 1 : column - text.size(), text, value);
  line_at(row).put(column, glyphs_.peak, mark);
}

std::string Plotter::rows() const {
  std::string out;
  for (std::size_t row = scale_.rows(); row-- > 0;) {
    Line line(width_);
    line.put(gutter_, glyphs_.side, Ink::faint);
    for (const Label& label : labels_) {
      if (label.row != row) continue;
      line.write(gutter_ - 1 - label.text.size(), label.text, label.ink);
      line.put(gutter_, glyphs_.tick_left, Ink::faint);
    }
    line.write(gutter_ + 1, grid_[row]);
    out += line.text(colour_);
  }
  return out;
}

std::string Plotter::steps() const {
  const std::size_t count =
      std::max(plot_.run.live.size(), plot_.before ? plot_.before->live.size() : 0);
  const std::size_t distance = columns_.label_distance(12);
  std::vector<Mark> marks;
  for (std::size_t step = 0; step < columns_.steps; step += distance)
    marks.push_back({columns_.column_of(step), count_text(static_cast<std::int64_t>(step))});
  return axis(marks,
              count_text(static_cast<std::int64_t>(count)) + (count == 1 ? " step" : " steps"));
}

std::string Plotter::times() const {
  const TickUnit tick = plot_.time->tick;
  const auto all = static_cast<double>(std::max<std::int64_t>(plot_.time->duration.count(), 1));
  const auto columns = static_cast<double>(columns_.columns);
  const double distance = std::max(1.0, round_up(all * 12 / columns));
  std::vector<Mark> marks;
  for (double time = 0; time < all; time += distance)
    marks.push_back({static_cast<std::size_t>(time / all * columns),
                     time == 0 ? "0" : ticks_text(Ticks(static_cast<std::int64_t>(time)), tick)});
  return axis(marks, ticks_text(plot_.time->duration, tick));
}

// As many marks as leave room for the end.
std::string Plotter::axis(std::span<const Mark> marks, const std::string& end) const {
  Line axis(width_), labels(width_);
  axis.put(gutter_, glyphs_.corner, Ink::faint);
  for (std::size_t i = gutter_ + 1; i < width_; ++i) axis.put(i, glyphs_.bottom, Ink::faint);
  for (const Mark& mark : marks) {
    const std::size_t column = gutter_ + 1 + mark.column;
    const std::size_t left = column - std::min(mark.label.size() / 2, column);
    if (left + mark.label.size() + 2 + end.size() > width_) break;
    axis.put(column, glyphs_.tick_below, Ink::faint);
    labels.write(left, mark.label, Ink::faint);
  }
  labels.write(width_ - end.size(), end, Ink::faint);
  return axis.text(colour_) + labels.text(colour_);
}

// A row each: how much of a column's time the lane is busy. Where a lane that should be busy waits
// for most of a column, that is what is drawn.
std::string Plotter::lanes() const {
  if (!plot_.time) return {};
  std::string out;
  for (const PlotLane& lane : plot_.time->lanes) {
    Line line(width_);
    line.write(gutter_ - 1 - lane.name.size(), lane.name, Ink::faint);
    for (std::size_t i = 0; i < columns_.columns; ++i) {
      const std::size_t first = columns_.first(i),
                        last = std::min(columns_.last(i), lane.busy.size());
      if (first >= last) break;
      double busy = 0;
      for (std::size_t at = first; at < last; ++at) busy += lane.busy[at];
      busy /= static_cast<double>(last - first);
      const bool waits = lane.waits && busy < 1 - 1e-9;
      const auto level = static_cast<std::size_t>(std::ceil(busy * kLevels - 1e-9));
      line.put(gutter_ + 1 + i, waits && busy < 0.5 ? glyphs_.wait : glyphs_.area[level],
               waits ? Ink::wait : Ink::run);
    }
    out += line.text(colour_);
  }
  return out;
}

// Recomputations in each column, against the column that has the most.
std::string Plotter::recomputed() const {
  const auto before = [&](std::size_t step) {
    return std::lower_bound(plot_.recomputed.begin(), plot_.recomputed.end(), step);
  };
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < columns_.columns; ++i)
    counts.push_back(before(columns_.last(i)) - before(columns_.first(i)));
  const std::int64_t most = *std::max_element(counts.begin(), counts.end());
  if (most == 0) return {};
  Line line(width_);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto level = static_cast<std::size_t>((counts[i] * kLevels + most - 1) / most);
    line.put(gutter_ + 1 + i, glyphs_.again[level], Ink::again);
  }
  return line.text(colour_);
}

std::string Plotter::legend() const {
  struct Entry {
    std::string_view glyph;
    std::string text;
    Ink ink;
  };
  std::vector<Entry> entries{{glyphs_.area[kLevels], std::string(plot_.run_name), Ink::run}};
  if (plot_.before)
    entries.push_back({glyphs_.before, std::string(plot_.before_name), Ink::before});
  if (plot_.budget)
    entries.push_back({glyphs_.budget, "budget " + bytes_text(*plot_.budget), Ink::budget});
  if (!plot_.recomputed.empty())
    entries.push_back({glyphs_.again[kLevels / 2], "recomputing", Ink::again});
  if (plot_.time && !plot_.time->lanes.empty())
    entries.push_back({glyphs_.wait, "waiting for copies", Ink::wait});

  std::string out;
  Line line(width_);
  std::size_t column = 0;
  for (const Entry& entry : entries) {
    const std::size_t length = 2 + columns_of(entry.text);
    if (column > 0 && column + length > width_) {
      out += line.text(colour_);
      line = Line(width_);
      column = 0;
    }
    line.put(column, entry.glyph, entry.ink);
    line.write(column + 2, entry.text, Ink::plain);
    column += length + 3;
  }
  return out + line.text(colour_);
}

}  // namespace

std::string plot_memory(const MemoryPlot& plot, const TerminalStyle& style) {
  return Plotter(plot, style).draw();
}

bool utf8_locale() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string name = value;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace lowtide::report
