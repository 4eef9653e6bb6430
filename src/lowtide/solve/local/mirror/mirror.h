// Orders of a training step whose backward mirrors the forward, each brought within the budget by
// drop. Least time, free order, without transfers. A unit of work is as of drop, or an op ordered.
// See mirror.cpp.
#pragma once

#include <memory>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/graph/graph.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::local::mirror {

std::unique_ptr<Solver> make_mirror();

// The given forward, and the forward sorted by the longest path to the end, each with the backward
// in the opposite order. Without orders that the limits stop, and without the given order.
std::vector<std::vector<OpId>> mirrored_orders(const Graph& graph, Limits& limits);

}  // namespace lowtide::solve::local::mirror
