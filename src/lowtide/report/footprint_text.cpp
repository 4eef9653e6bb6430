#include "lowtide/report/footprint_text.h"

#include <fmt/format.h>

#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

std::string ratio_text(Bytes reserved, Bytes allocated) {
  if (allocated == Bytes(0)) return {};
  return fmt::format(
      "{:.3f}", static_cast<double>(reserved.count()) / static_cast<double>(allocated.count()));
}

std::string settings_text(const std::string& settings) {
  return settings.empty() ? "the defaults" : settings;
}

std::string step_table(const std::vector<layout::Peaks>& steps, const TerminalStyle& style) {
  TableColumn names{"step"}, requested{"requested", Align::right, false, 1},
      allocated{"allocated", Align::right}, reserved{"reserved", Align::right},
      ratio{"ratio", Align::right}, split{"free, not releasable", Align::right, false, 2};
  for (std::size_t first = 0; first < steps.size();) {
    std::size_t end = first + 1;
    while (end < steps.size() && steps[end] == steps[first]) ++end;
    const layout::Peaks& peaks = steps[first];
    names.cells.push_back(end == first + 1 ? fmt::format("{}", end)
                                           : fmt::format("{} to {}", first + 1, end));
    requested.cells.push_back(bytes_text(peaks.requested));
    allocated.cells.push_back(bytes_text(peaks.allocated));
    reserved.cells.push_back(bytes_text(peaks.reserved));
    ratio.cells.push_back(ratio_text(peaks.reserved, peaks.allocated));
    split.cells.push_back(bytes_text(peaks.inactive_split));
    first = end;
  }
  return draw_table({std::move(names), std::move(requested), std::move(allocated),
                     std::move(reserved), std::move(ratio), std::move(split)},
                    style);
}

}  // namespace

std::string reserved_text(const layout::DeviceFootprint& footprint) {
  const layout::Peaks& peaks = footprint.replay.peaks;
  const std::string settings = layout::to_string(footprint.terms.settings),
                    ratio = ratio_text(peaks.reserved, peaks.allocated);
  return fmt::format("PyTorch's allocator{} reserves {} for {} allocated{}.",
                     settings.empty() ? "" : fmt::format(" ({})", settings),
                     bytes_text(peaks.reserved), bytes_text(peaks.allocated),
                     ratio.empty() ? "" : fmt::format(", {} times as much", ratio));
}

std::string help_text(const layout::DeviceFootprint& footprint) {
  if (footprint.better.empty()) return {};
  const layout::OtherSettings& best = footprint.better.front();
  return fmt::format(
      "{} saves {} of it.",
      best.settings.empty() ? "Its default settings would help: that" : best.settings,
      bytes_text(footprint.replay.peaks.reserved - best.reserved));
}

std::string footprint_text(const layout::DeviceFootprint& footprint, const TerminalStyle& style) {
  const layout::Replay& replay = footprint.replay;
  std::string text =
      fmt::format("allocator  {}\n", settings_text(layout::to_string(footprint.terms.settings)));
  if (footprint.terms.memory)
    text += fmt::format("memory     {}\n", bytes_text(*footprint.terms.memory));
  text += fmt::format("live       {}\n", exact_bytes_text(footprint.live));
  text += fmt::format("allocated  {}\n", exact_bytes_text(replay.peaks.allocated));
  text += fmt::format("reserved   {}\n", exact_bytes_text(replay.peaks.reserved));
  if (replay.counts.retries > 0)
    text += fmt::format("retries    {}: cached memory was given back before another attempt\n",
                        count_text(replay.counts.retries));
  if (const auto& lost = replay.out_of_memory)
    text += fmt::format("no memory  for {} in step {}, with {} allocated and {} reserved\n",
                        bytes_text(lost->requested), replay.steps.size(),
                        bytes_text(lost->allocated), bytes_text(lost->reserved));
  text += "\n" + step_table(replay.steps, style);
  if (footprint.better.empty()) return text;
  text += "\nwhat would help\n";
  TableColumn settings{"", Align::left, true}, effects{"", Align::left};
  for (const layout::OtherSettings& other : footprint.better) {
    settings.cells.push_back(settings_text(other.settings));
    effects.cells.push_back(replay.out_of_memory
                                ? fmt::format("reserves {}", bytes_text(other.reserved))
                                : fmt::format("saves {} of what is reserved",
                                              bytes_text(replay.peaks.reserved - other.reserved)));
  }
  return text + draw_table({std::move(settings), std::move(effects)}, style);
}

}  // namespace lowtide::report
