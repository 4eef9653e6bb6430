// A trade-off curve and a fit as people read them in a terminal.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/tradeoff.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// The plot, a table from the largest budget to the smallest, and what is known of smaller ones.
std::string curve_text(const Graph& graph, const Tradeoff& curve, const TerminalStyle& style);

// A line for each figure.
std::string fit_text(const Graph& graph, const Fit& fit, const TerminalStyle& style);

}  // namespace lowtide::report
