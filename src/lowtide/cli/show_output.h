// The output of `show` beside its pictures: the steps by the names of ops and tensors.
#pragma once

#include <string>

#include "lowtide/graph/graph.h"
#include "lowtide/report/report.h"

namespace lowtide::cli {

// A line for each step of the run that the report shows: its number, the bytes in use during it,
// what it does and to which op or tensor.
std::string steps_text(const Graph& graph, const report::Report& report);

// One object: the figures of the given order and, with a plan, of the plan, and the shown run's
// steps.
std::string report_json(const Graph& graph, const report::Report& report);

}  // namespace lowtide::cli
