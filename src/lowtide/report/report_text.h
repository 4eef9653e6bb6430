// A report for a terminal: the output of `lowtide show`.
#pragma once

#include <string>

#include "lowtide/report/plot.h"
#include "lowtide/report/report.h"

namespace lowtide::report {

// The plot, figures before and after, the largest tensors at the peak, recomputed time by origin,
// repeated blocks. No line is wider than the style's width. Long names are shortened in the middle;
// control characters are replaced.
std::string text_report(const Report& report, const TerminalStyle& style);

}  // namespace lowtide::report
