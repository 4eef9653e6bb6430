// A report for a terminal: what `lowtide show` prints.
#pragma once

#include <string>

#include "lowtide/report/plot.h"
#include "lowtide/report/report.h"

namespace lowtide::report {

// Plot, figures before and after, the largest tensors at the peak, recomputed time by origin,
// blocks that repeat. No line is wider than the style says; long names are shortened in the middle,
// and characters that would steer a terminal are replaced.
std::string text_report(const Report& report, const TerminalStyle& style);

}  // namespace lowtide::report
