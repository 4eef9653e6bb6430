// How far an axis reaches, by module, and why it stops: text for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lowtide/graph/graph.h"
#include "lowtide/ops/dimensions/follow.h"
#include "lowtide/report/plot.h"

namespace lowtide::report {

// Ops of modules whose names differ only in numbers ("layers.*.norm"), or of the whole graph.
struct ReachedModule {
  std::string origin;
  std::size_t ops = 0, carried = 0, stopped = 0;
  Bytes bytes = {}, carried_bytes = {};  // of their outputs
};

// Ops of equal modules at which the axis stops for the same reason.
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

// Lines about the whole graph, a table of modules, and a table of reasons. `axes`: the axes as the
// user wrote them.
std::string reach_text(const Graph& graph, const std::vector<std::string>& axes,
                       const ReachSummary& summary, const TerminalStyle& style);

}  // namespace lowtide::report
