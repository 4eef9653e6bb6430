// What a plan takes from a device under the caching allocator, for a terminal.
#pragma once

#include <string>

#include "lowtide/layout/footprint.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// A row for each step, equal ones together, and the settings that would reserve less.
std::string footprint_text(const layout::DeviceFootprint& footprint, const TerminalStyle& style);

// A sentence each: reserved beside allocated bytes, and the setting that would save most; empty if
// none does.
std::string reserved_text(const layout::DeviceFootprint& footprint);
std::string help_text(const layout::DeviceFootprint& footprint);

}  // namespace lowtide::report
