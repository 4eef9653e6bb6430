// A trade-off curve as a self-contained page: no network, no other files.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/tradeoff.h"

namespace lowtide::report {

// beside: another curve of the graph, such as one with fewer techniques, drawn as a line.
std::string html_curve(const Graph& graph, const Tradeoff& curve, const Tradeoff* beside = nullptr);

}  // namespace lowtide::report
