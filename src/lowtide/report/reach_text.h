// How far an axis reaches, for people: by module, and what stops it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/follow.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// Ops of modules that differ in numbers alone ("layers.*.norm"), or of the whole graph.
struct ReachedModule {
  std::string origin;
  std::size_t ops = 0, carried = 0, stopped = 0;
  Bytes bytes = {}, carried_bytes = {};  // of what they make
};

// Ops of alike modules that stop for the same reason.
struct StopsAlike {
  std::string origin, kind, reason;
  std::vector<OpId> ops;
};

struct ReachSummary {
  ReachedModule all;
  std::vector<ReachedModule> modules;  // in the order of the ops
  std::vector<StopsAlike> stops;       // the most ops first
};

ReachSummary summarize(const Graph& graph, const dimensions::Reach& reach);

// Lines of the whole graph, a table of modules and one of what stops. `axes`: how the user calls
// them.
std::string reach_text(const Graph& graph, const std::vector<std::string>& axes,
                       const ReachSummary& summary, const TerminalStyle& style);

}  // namespace lowtide::report
