// A report as a self-contained page: no network, no other files.
#pragma once

#include <cstddef>
#include <string>

#include "lowtide/report/report.h"

namespace lowtide::report {

// `graph` must be the graph of the report. If both runs have at most `full_steps` steps, the page
// contains every step and tensor and can show what is live at any step. Longer runs are
// down-sampled to their peaks, which keeps every page below about 10 MB.
std::string html_report(const Graph& graph, const Report& report, std::size_t full_steps = 120'000);

}  // namespace lowtide::report
