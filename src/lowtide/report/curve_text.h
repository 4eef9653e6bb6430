// A trade-off curve and a fit as text for a terminal.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/tradeoff.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// The plot, a table from the largest budget to the smallest, and the facts about smaller budgets.
std::string curve_text(const Graph& graph, const Tradeoff& curve, const TerminalStyle& style);

// A line for each figure.
std::string fit_text(const Graph& graph, const Fit& fit, const TerminalStyle& style);

}  // namespace lowtide::report
