// What a snapshot of a job comes to, for people and for programs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "lowtide/layout/snapshot_peak.h"
#include "lowtide/layout/snapshot_savings.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

struct RecordedDevice {
  std::size_t device = 0;
  layout::Record record;
  layout::RecordedPeak peak;
  layout::SnapshotSavings savings;
};

// At most `owners` of them; the others as one row.
std::string snapshot_text(std::span<const RecordedDevice> devices, std::size_t owners,
                          const TerminalStyle& style);
// One line, ending in a newline; all owners. docs/reference/command.md has the keys.
std::string snapshot_json(std::span<const RecordedDevice> devices);

// A page that needs nothing else: no network, no other files. `name` is the file's.
std::string snapshot_html(std::span<const RecordedDevice> devices, std::string_view name);

// "layers.py:31 forward", or "no stack".
std::string owner_text(const layout::PeakOwner& owner);

}  // namespace lowtide::report
