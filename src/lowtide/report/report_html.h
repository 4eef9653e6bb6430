// A report as one page that needs nothing else: no network, no other files.
#pragma once

#include <cstddef>
#include <string>

#include "lowtide/report/report.h"

namespace lowtide::report {

// `graph` is the one that the report was made of. Pages of up to `full_steps` steps in both runs
// carry every step and tensor, so that the page can say what is live at any of them; beyond it the
// runs are down-sampled to their peaks, which keeps any page below about 10 MB.
std::string html_report(const Graph& graph, const Report& report, std::size_t full_steps = 120'000);

}  // namespace lowtide::report
