// Writes a trade-off curve or a fit as JSON and CSV. docs/reference/command.md lists the keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lowtide/graph/graph.h"
#include "lowtide/plan/tradeoff.h"

namespace lowtide::io {

// Facts about a run that are not in its result.
struct RunFacts {
  std::uint64_t seed = 0;
  double seconds = 0;
};

// One line, ending in a newline. Points from the largest budget to the smallest.
std::string curve_json(const Graph& graph, const Tradeoff& curve, const RunFacts& facts);
std::string fit_json(const Graph& graph, const Fit& fit, const RunFacts& facts,
                     std::string_view plan_file);

// A line of names, a line for each point from the largest budget to the smallest, and one for the
// smallest reachable budget. Unknown values are empty.
std::string curve_csv(const Graph& graph, const Tradeoff& curve);

}  // namespace lowtide::io
