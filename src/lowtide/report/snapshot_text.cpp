#include "lowtide/report/snapshot_text.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "lowtide/report/report_table.h"
#include "lowtide/report/units_text.h"

namespace lowtide::report {

namespace {

using layout::PeakOwner;
using layout::RecordedBlock;

std::string share_text(Bytes part, Bytes whole) {
  if (whole == Bytes(0)) return {};
  return fmt::format("{:.1f} %",
                     100 * static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

std::string owners_table(const layout::RecordedPeak& peak, std::size_t most,
                         const TerminalStyle& style) {
  TableColumn bytes{"bytes", Align::right}, share{"share", Align::right},
      blocks{"blocks", Align::right}, where{"allocated by", Align::left, true};
  const auto add = [&](Bytes sum, std::size_t count, const std::string& text) {
    bytes.cells.push_back(bytes_text(sum));
    share.cells.push_back(share_text(sum, peak.allocated));
    blocks.cells.push_back(count_text(static_cast<std::int64_t>(count)));
    where.cells.push_back(text);
  };
  const std::size_t shown = std::min(most, peak.owners.size());
  for (std::size_t i = 0; i < shown; ++i)
    add(peak.owners[i].bytes, peak.owners[i].blocks, owner_text(peak.owners[i]));
  Bytes rest;
  std::size_t rest_blocks = 0;
  for (std::size_t i = shown; i < peak.owners.size(); ++i) {
    rest += peak.owners[i].bytes;
    rest_blocks += peak.owners[i].blocks;
  }
  if (shown < peak.owners.size())
    add(rest, rest_blocks, fmt::format("{} other places", peak.owners.size() - shown));
  return draw_table({std::move(bytes), std::move(share), std::move(blocks), std::move(where)},
                    style);
}

std::string parts_of_peak(const layout::RecordedPeak& peak) {
  std::string text =
      fmt::format("movable    {} ({}) at most, by recomputation or offload\n",
                  bytes_text(peak.passing), share_text(peak.passing, peak.allocated));
  const auto add = [&](Bytes bytes, std::string_view what) {
    if (bytes > Bytes(0)) text += fmt::format("other      {} {}\n", bytes_text(bytes), what);
  };
  add(peak.from_start, "there before the record, and freed after the peak");
  add(peak.to_end, "allocated in the record, and never freed in it");
  add(peak.throughout, "there from before the record to its end");
  return text;
}

std::string settings_name(const std::string& settings) {
  return settings.empty() ? "the default settings" : settings;
}

std::string savings_table(const layout::SnapshotSavings& savings, const TerminalStyle& style) {
  TableColumn names{"replayed with", Align::left, true}, reserved{"reserved", Align::right},
      less{"less", Align::right};
  const auto add = [&](const std::string& name, Bytes bytes) {
    names.cells.push_back(name);
    reserved.cells.push_back(bytes_text(bytes));
    const Bytes saved = savings.reserved - bytes;
    less.cells.push_back(saved == Bytes(0)  ? std::string()
                         : saved > Bytes(0) ? bytes_text(saved)
                                            : "-" + bytes_text(Bytes(0) - saved));
  };
  add(settings_name(savings.settings) + " (the job's)", savings.reserved);
  for (const layout::OtherSettings& other : savings.others)
    if (other.reserved < savings.reserved) add(settings_name(other.settings), other.reserved);
  add("planned offsets", savings.arenas);
  return draw_table({std::move(names), std::move(reserved), std::move(less)}, style);
}

}  // namespace

std::string owner_text(const PeakOwner& owner) {
  std::string text;
  for (const layout::StackFrame& frame : owner.frames) {
    const std::size_t slash = frame.filename.rfind('/');
    const std::string file =
        slash == std::string::npos ? frame.filename : frame.filename.substr(slash + 1);
    text += fmt::format("{}{}:{} {}", text.empty() ? "" : " < ", file, frame.line, frame.name);
  }
  return text.empty() ? "no stack" : text;
}

std::string snapshot_text(std::span<const RecordedDevice> devices, std::size_t owners,
                          const TerminalStyle& style) {
  std::string text;
  for (const RecordedDevice& one : devices) {
    if (!text.empty()) text += "\n";
    const layout::RecordedPeak& peak = one.peak;
    const auto before = std::ranges::count_if(one.record.blocks, &RecordedBlock::is_from_start);
    text += fmt::format("device     {}: {} events, {} blocks from before the first\n", one.device,
                        count_text(one.record.events), count_text(before));
    if (one.record.contradictions > 0)
      text += fmt::format("left out   {} events that contradict the others\n",
                          count_text(static_cast<std::int64_t>(one.record.contradictions)));
    text += fmt::format("allocated  {} at the peak, {}\n", exact_bytes_text(peak.allocated),
                        peak.event == RecordedBlock::kBeforeRecord
                            ? "before the first event"
                            : fmt::format("after event {}", count_text(peak.event)));
    text += fmt::format("reserved   {} at most", exact_bytes_text(one.record.reserved_peak));
    if (peak.allocated > Bytes(0))
      text += fmt::format(", {:.3f} times as much",
                          static_cast<double>(one.record.reserved_peak.count()) /
                              static_cast<double>(peak.allocated.count()));
    text += "\n" + parts_of_peak(peak) + "\n" + owners_table(peak, owners, style) + "\n" +
            savings_table(one.savings, style);
    if (!one.savings.settings_refused.empty())
      text += fmt::format("The job's settings are replaced by the defaults: {}\n",
                          one.savings.settings_refused);
  }
  return text.empty() ? "The snapshot has no events and no segments.\n" : text;
}

}  // namespace lowtide::report
