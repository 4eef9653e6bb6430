// Scales are tried from the smallest on, after rounding, so that nothing reads "1000 us".
#include "lowtide/report/units_text.h"

#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace lowtide::report {

namespace {

// Three significant digits, and all digits of a whole part that has more.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

// `units` from the smallest on, each `step` times the one before; the smallest is whole.
std::string scaled(std::int64_t count, double step, std::span<const std::string_view> units) {
  if (std::abs(static_cast<double>(count)) < step) return fmt::format("{} {}", count, units[0]);
  double value = std::abs(static_cast<double>(count));
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= step - 0.5) {
    value /= step;
    ++unit;
  }
  return fmt::format("{}{} {}", count < 0 ? "-" : "", three_digits(value), units[unit]);
}

constexpr std::array<std::string_view, 7> kBytes{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
constexpr std::array<std::string_view, 4> kTimes{"ns", "us", "ms", "s"};
constexpr std::array<std::string_view, 7> kFlops{"FLOP",  "KFLOP", "MFLOP", "GFLOP",
                                                 "TFLOP", "PFLOP", "EFLOP"};

}  // namespace

std::string bytes_text(Bytes bytes) { return scaled(bytes.count(), 1024, kBytes); }

std::string exact_bytes_text(Bytes bytes) {
  if (bytes.count() < 1024) return bytes_text(bytes);
  return fmt::format("{} ({} bytes)", bytes_text(bytes), count_text(bytes.count()));
}

std::string ticks_text(Ticks ticks, TickUnit unit) {
  const std::span<const std::string_view> times(kTimes);
  switch (unit) {
    case TickUnit::ns: return scaled(ticks.count(), 1000, times);
    case TickUnit::us: return scaled(ticks.count(), 1000, times.subspan(1));
    case TickUnit::ms: return scaled(ticks.count(), 1000, times.subspan(2));
    case TickUnit::flop: return scaled(ticks.count(), 1000, kFlops);
    case TickUnit::none: break;
  }
  return count_text(ticks.count());
}

std::string count_text(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string percent_text(double percent) {
  if (std::isinf(percent)) return "infinite";
  const bool tiny = percent != 0 && std::abs(percent) < 0.01;
  return fmt::format("{:.{}f} %", percent, tiny ? 3 : 2);
}

}  // namespace lowtide::report
