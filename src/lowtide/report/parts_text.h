// The cost and the result of each subsolver of a portfolio, as a table for a terminal.
#pragma once

#include <span>
#include <string>

#include "lowtide/plan/outcome.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// Subsolvers that did any work or found anything; empty if there is none. Shares are of `base`, the
// duration of computing each op once. A run without a time limit has no seconds: then the table
// shows work.
std::string parts_text(std::span<const PortfolioPart> parts, Ticks base,
                       const TerminalStyle& style);

}  // namespace lowtide::report
