// Integers up to the labels: rounding must never draw a plan above a budget that it keeps.
#include "lowtide/report/plot_scale.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace lowtide::report {

double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

Scale::Scale(Bytes most, std::optional<Bytes> budget, std::size_t rows) : rows_(rows) {
  const auto usable = static_cast<std::int64_t>(rows) - 1;
  levels_ = usable * kLevels;
  bytes_ = std::max<std::int64_t>(most.count(), 1);
  const bool near = budget && budget->count() > 0 && budget->count() / 3 <= bytes_ / 2;
  if (!near) return;
  // The most rows that the budget may take if everything else is to fit.
  std::int64_t below = usable;
  if (budget->count() < bytes_)
    below = checked_mul_div(usable, budget->count(), bytes_, Rounding::floor);
  if (below > 0) {
    levels_ = below * kLevels;
    bytes_ = budget->count();
  }
  budget_row_ = static_cast<std::size_t>(level(*budget) / kLevels);
}

std::int64_t Scale::level(Bytes value) const {
  return checked_mul_div(value.count(), levels_, bytes_, Rounding::ceil);
}

std::vector<Scale::Tick> Scale::ticks() const {
  constexpr std::array<const char*, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const auto rows = static_cast<double>(rows_);
  const double row = kLevels * static_cast<double>(bytes_) / static_cast<double>(levels_);
  const auto unit = static_cast<std::size_t>(std::log2(std::max(row * rows, 1.0)) / 10);
  const double size = std::ldexp(1.0, static_cast<int>(10 * unit));
  double step = round_up(std::max(row * 2 / size, 1e-3));
  if (unit == 0) step = std::max(step, 1.0);
  const int decimals = step < 1 ? static_cast<int>(std::ceil(-std::log10(step) - 1e-9)) : 0;

  std::vector<Tick> ticks{{0, "0"}};
  for (int i = 1;; ++i) {
    const double at = i * step * size / row;
    if (at > rows - 0.5) break;
    std::array<char, 32> label{};
    std::snprintf(label.data(), label.size(), "%.*f %s", decimals, i * step, kUnits.at(unit));
    ticks.push_back({static_cast<std::size_t>(std::lround(at)), label.data()});
  }
  return ticks;
}

std::size_t Columns::last(std::size_t column) const {
  return std::max(first(column) + 1, first(column + 1));
}

std::size_t Columns::column_of(std::size_t step) const {
  std::size_t column = std::min(columns - 1, step * columns / steps);
  while (column > 0 && first(column) > step) --column;
  while (column + 1 < columns && last(column) <= step) ++column;
  return column;
}

std::size_t Columns::label_distance(std::size_t wanted) const {
  const double exact = static_cast<double>(steps * wanted) / static_cast<double>(columns);
  return static_cast<std::size_t>(std::lround(round_up(std::max(exact, 1.0))));
}

std::optional<Bytes> most_in(const MemoryProfile& profile, std::size_t first, std::size_t last) {
  last = std::min(last, profile.live.size());
  if (first >= last) return first == 0 ? std::optional(profile.start) : std::nullopt;
  const auto steps = profile.live.subspan(first, last - first);
  const Bytes most = *std::max_element(steps.begin(), steps.end());
  return first == 0 ? std::max(most, profile.start) : most;
}

Bytes peak_of(const MemoryProfile& profile) {
  return most_in(profile, 0, profile.live.size()).value_or(profile.start);
}

std::vector<std::size_t> sample_peaks(std::span<const Bytes> values, std::size_t count) {
  std::vector<std::size_t> peaks;
  if (values.empty() || count == 0) return peaks;
  const Columns columns{values.size(), std::min(count, values.size())};
  peaks.reserve(columns.columns);
  for (std::size_t i = 0; i < columns.columns; ++i) {
    const auto steps = values.subspan(columns.first(i), columns.last(i) - columns.first(i));
    const auto most = std::max_element(steps.begin(), steps.end());
    peaks.push_back(columns.first(i) + static_cast<std::size_t>(most - steps.begin()));
  }
  return peaks;
}

}  // namespace lowtide::report
