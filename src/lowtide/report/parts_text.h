// What each solver of a portfolio took and what came of it, as a table for a terminal.
#pragma once

#include <span>
#include <string>

#include "lowtide/plan/outcome.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// Those that did any work or found anything; empty if there is none. Shares are of `base`, the
// duration of computing each op once. Without seconds, of runs without a time limit, the work is
// shown.
std::string parts_text(std::span<const PortfolioPart> parts, Ticks base,
                       const TerminalStyle& style);

}  // namespace lowtide::report
