// Overhead against budget, drawn with characters.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/tradeoff.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// Lines that end in a newline: plans as a staircase with a mark at each point, the region that is
// proven infeasible as an area. Empty for a curve without any plan.
std::string plot_curve(const Graph& graph, const Tradeoff& curve, const TerminalStyle& style);

}  // namespace lowtide::report
