// A trade-off curve as one page that needs nothing else: no network, no other files.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/tradeoff.h"

namespace lowtide::report {

std::string html_curve(const Graph& graph, const Tradeoff& curve);

}  // namespace lowtide::report
