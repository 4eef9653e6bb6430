// Two staircases that are true between the points too: a plan holds for every larger budget, so its
// height goes on to the right; a bound holds for every smaller one, so its height goes on to the
// left. The best plans of all budgets lie between the two.
#include "lowtide/report/curve_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "lowtide/report/plot_line.h"
#include "lowtide/report/plot_scale.h"
#include "lowtide/report/units_text.h"
#include "lowtide/sim/simulate.h"

namespace lowtide::report {

namespace {

constexpr std::int64_t kLevels = 8;

struct Glyphs {
  std::array<std::string_view, kLevels + 1> area;
  std::string_view impossible, plan, point, proven, beyond, side, tick_left, corner, bottom,
      tick_below;
};
constexpr Glyphs kUnicode{{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
                          "░",
                          "─",
                          "○",
                          "●",
                          "△",
                          "│",
                          "┤",
                          "└",
                          "─",
                          "┬"};
constexpr Glyphs kAscii{{" ", "_", "_", ".", ".", ":", ":", "#", "#"},
                        "/",
                        "-",
                        "o",
                        "@",
                        "^",
                        "|",
                        "+",
                        "+",
                        "-",
                        "+"};

struct Mark {
  Bytes budget;
  Bytes needs;                  // of its plan, which holds from there on
  double overhead = 0;          // per cent
  std::optional<double> bound;  // the same
  bool planned = false, proven = false;
};

class Plotter {
 public:
  Plotter(const Graph& graph, const Tradeoff& curve, const TerminalStyle& style);
  std::string draw();

 private:
  double highest() const;
  double lowest() const;
  std::size_t column_of(Bytes budget) const;
  double budget_at(std::size_t column) const;
  std::size_t start_of(std::size_t i) const;  // column from which a mark's plan holds
  // The share of the height.
  double part_of(double overhead) const {
    return std::clamp((overhead - low_) / (top_ - low_), 0.0, 1.0);
  }
  std::size_t row_of(double overhead) const {
    return static_cast<std::size_t>(
        std::lround(part_of(overhead) * static_cast<double>(rows_ - 1)));
  }
  bool shows(const Mark& mark) const { return mark.bound && *mark.bound > low_; }
  void paint_impossible();
  void paint_plans();
  std::string rows() const;
  std::string budgets() const;
  std::string legend() const;

  const Bytes floor_;
  const bool colour_;
  const Glyphs& glyphs_;
  std::vector<Mark> marks_;  // by ascending budgets
  std::size_t width_, rows_, gutter_ = 0, columns_ = 0;
  double low_ = 0, top_ = 1, step_ = 1;
  std::vector<Line> grid_;  // by row, from the bottom
};

Plotter::Plotter(const Graph& graph, const Tradeoff& curve, const TerminalStyle& style)
    : floor_(curve.floor),
      colour_(style.colour),
      glyphs_(style.unicode ? kUnicode : kAscii),
      width_(std::max<std::size_t>(style.width, 40)),
      rows_(std::max<std::size_t>(style.height, 4)) {
  const Ticks base = own_duration(graph);
  const auto add = [&](const TradeoffPoint& point) {
    const Outcome& outcome = point.outcome;
    Mark mark;
    mark.budget = point.budget;
    mark.planned = outcome.plan.has_value();
    mark.needs = mark.planned ? point.needs() : point.budget;
    mark.proven = outcome.status == Status::optimal;
    mark.overhead = overhead_percent(outcome.cost.duration, base);
    if (is_bounded(outcome, base)) mark.bound = overhead_percent(outcome.bound.duration, base);
    marks_.push_back(mark);
  };
  for (const TradeoffPoint& point : curve.points) add(point);
  // Beyond the range that was asked for it would press all others together.
  if (curve.smallest && in_range(curve, curve.smallest->budget)) add(*curve.smallest);
  std::ranges::stable_sort(marks_, {}, &Mark::budget);
  const double most = std::max(highest(), 0.0), least = lowest();
  step_ = round_up(std::max(most - least, 0.5) / static_cast<double>(rows_) * 2.5);
  low_ = least < 0 ? -step_ * std::ceil(-least / step_) : 0;
  top_ = std::max(most, step_);
  for (double value = low_; value <= top_; value += step_)
    gutter_ = std::max(gutter_, fmt::format("{:g} %", value).size() + 1);
  columns_ = width_ - gutter_ - 1;
  grid_.assign(rows_, Line(columns_));
}

// If few points are far above all others, as near the smallest budgets, they are omitted so that
// the others can be seen.
double Plotter::highest() const {
  std::vector<double> overheads;
  for (const Mark& mark : marks_)
    if (mark.planned) overheads.push_back(mark.overhead);
  if (overheads.empty()) return std::ranges::max(marks_, {}, &Mark::bound).bound.value_or(0);
  std::ranges::sort(overheads);
  const double high = overheads[overheads.size() * 3 / 4];
  return high > 0 && overheads.back() > 3 * high ? 2 * high : overheads.back();
}

// Below 0 if plans hide more of the network than the given order.
double Plotter::lowest() const {
  double least = 0;
  for (const Mark& mark : marks_)
    if (mark.planned) least = std::min(least, mark.overhead);
  return least;
}

std::string Plotter::draw() {
  const bool empty = std::ranges::none_of(marks_, [&](const Mark& mark) {
    return mark.planned || shows(mark) || mark.budget < floor_;
  });
  if (empty) return {};
  paint_impossible();
  paint_plans();
  return rows() + budgets() + legend();
}

std::size_t Plotter::column_of(Bytes budget) const {
  const double low = static_cast<double>(marks_.front().budget.count());
  const double span = static_cast<double>(marks_.back().budget.count()) - low;
  if (span <= 0) return columns_ / 2;
  const double part = (static_cast<double>(budget.count()) - low) / span;
  return static_cast<std::size_t>(std::lround(part * static_cast<double>(columns_ - 1)));
}

double Plotter::budget_at(std::size_t column) const {
  const double low = static_cast<double>(marks_.front().budget.count());
  const double span = static_cast<double>(marks_.back().budget.count()) - low;
  return low + span * static_cast<double>(column) / static_cast<double>(columns_ - 1);
}

std::size_t Plotter::start_of(std::size_t i) const {
  const Bytes before = marks_[i > 0 ? i - 1 : 0].budget;
  return std::min(column_of(marks_[i].budget), column_of(std::max(marks_[i].needs, before)) +
                                                   (marks_[i].needs <= before ? 1 : 0));
}

void Plotter::paint_impossible() {
  for (std::size_t column = 0; column < columns_; ++column) {
    const double budget = budget_at(column);
    if (budget < static_cast<double>(floor_.count())) {
      for (Line& line : grid_) line.put(column, glyphs_.impossible, Ink::before);
      continue;
    }
    const auto next = std::ranges::find_if(marks_, [&](const Mark& mark) {
      return static_cast<double>(mark.budget.count()) >= budget;
    });
    if (next == marks_.end() || !next->bound) continue;
    // Rounded down: no more than is proven. A plan that is proven is not painted over.
    auto level = static_cast<std::int64_t>(part_of(*next->bound) * static_cast<double>(rows_ - 1) *
                                           static_cast<double>(kLevels));
    for (std::size_t row = 0; level > 0 && row < rows_; ++row, level -= kLevels)
      grid_[row].put(column, glyphs_.area[static_cast<std::size_t>(std::min(level, kLevels))],
                     Ink::before);
  }
}

void Plotter::paint_plans() {
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (!marks_[i].planned || marks_[i].overhead > top_) continue;
    const std::size_t to = i + 1 < marks_.size() ? start_of(i + 1) : column_of(marks_[i].budget);
    for (std::size_t column = start_of(i); column < to; ++column)
      grid_[row_of(marks_[i].overhead)].put(column, glyphs_.plan, Ink::run);
  }
  for (const Mark& mark : marks_) {
    if (!mark.planned) continue;
    const std::string_view glyph = mark.overhead > top_ ? glyphs_.beyond
                                   : mark.proven        ? glyphs_.proven
                                                        : glyphs_.point;
    grid_[row_of(mark.overhead)].put(column_of(mark.budget), glyph, Ink::run);
  }
}

std::string Plotter::rows() const {
  std::vector<std::string> labels(rows_);
  const double rounding = step_ * 1e-6;
  for (double value = low_; value <= top_ + rounding; value += step_)
    labels[row_of(value)] = fmt::format("{:g} %", std::abs(value) < rounding ? 0 : value);
  std::string out;
  for (std::size_t row = rows_; row-- > 0;) {
    Line line(width_);
    line.put(gutter_, labels[row].empty() ? glyphs_.side : glyphs_.tick_left, Ink::faint);
    line.write(gutter_ - 1 - std::min(labels[row].size(), gutter_ - 1), labels[row], Ink::faint);
    line.write(gutter_ + 1, grid_[row]);
    out += line.text(colour_);
  }
  return out;
}

std::string Plotter::budgets() const {
  constexpr std::size_t kLabelColumns = 13;
  Line axis(width_), labels(width_);
  axis.put(gutter_, glyphs_.corner, Ink::faint);
  for (std::size_t i = gutter_ + 1; i < width_; ++i) axis.put(i, glyphs_.bottom, Ink::faint);
  std::size_t free_from = 0;  // columns left of it hold a label
  for (std::size_t at = 0; at < columns_; at += kLabelColumns) {
    // The last one stands at the end.
    if (at + kLabelColumns >= columns_) at = columns_ - 1;
    const std::string text = bytes_text(Bytes(static_cast<std::int64_t>(budget_at(at))));
    const std::size_t column = gutter_ + 1 + at;
    const std::size_t left =
        std::min(column - std::min(text.size() / 2, column), width_ - text.size());
    if (left < free_from) continue;
    axis.put(column, glyphs_.tick_below, Ink::faint);
    labels.write(left, text, Ink::faint);
    free_from = left + text.size() + 1;
  }
  return axis.text(colour_) + labels.text(colour_);
}

std::string Plotter::legend() const {
  struct Entry {
    std::string_view glyph, text;
    Ink ink;
    bool there;
  };
  const auto any = [&](auto is) { return std::ranges::any_of(marks_, is); };
  const std::array<Entry, 5> entries{{
      {glyphs_.point, "overhead of the plan", Ink::run,
       any([](const Mark& mark) { return mark.planned && !mark.proven; })},
      {glyphs_.proven, "proven the least", Ink::run,
       any([](const Mark& mark) { return mark.planned && mark.proven; })},
      {glyphs_.beyond, "far above", Ink::run,
       any([&](const Mark& mark) { return mark.planned && mark.overhead > top_; })},
      {glyphs_.area[kLevels], "no plan has so little", Ink::before,
       any([&](const Mark& mark) { return mark.budget >= floor_ && shows(mark); })},
      {glyphs_.impossible, "no plan fits", Ink::before, floor_ > marks_.front().budget},
  }};
  Line line(width_);
  std::size_t column = 0;
  std::string out;
  for (const Entry& entry : entries) {
    if (!entry.there) continue;
    if (column > 0 && column + 2 + entry.text.size() > width_) {
      out += line.text(colour_);
      line = Line(width_);
      column = 0;
    }
    line.put(column, entry.glyph, entry.ink);
    line.write(column + 2, entry.text, Ink::plain);
    column += 2 + entry.text.size() + 3;
  }
  return out + line.text(colour_);
}

}  // namespace

std::string plot_curve(const Graph& graph, const Tradeoff& curve, const TerminalStyle& style) {
  return Plotter(graph, curve, style).draw();
}

}  // namespace lowtide::report
