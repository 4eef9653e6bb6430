// Overhead against budget, drawn with characters.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/tradeoff.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// Lines that end in a newline: plans as a staircase with a mark at each point, what is proven to be
// impossible as an area. A curve without any plan is drawn as nothing.
std::string plot_curve(const Graph& graph, const Tradeoff& curve, const TerminalStyle& style);

}  // namespace lowtide::report
