// The first computation of one op, and what is sure to come before and after it. Private to the
// solver.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::bounds {

// When the first computation of another op comes, in every plan of the problem. `either` only where
// the order is free.
enum class Side : std::uint8_t { before, at, after, either };

struct CutPoint {
  OpId op;
  std::vector<Side> side;  // of each op
};

// Linear.
CutPoint cut_point_of(const Problem& problem, OpId op);

// For each position of the given order the bytes in use when every op is computed once in that
// order and everything is freed as early as it may be. Linear.
std::vector<Bytes> own_profile(const Graph& graph);

// Ops whose cut points promise the best bounds, the best first: from each of `count` equal shares
// of the steps of the given order that need more than the budget, the one that needs most.
std::vector<OpId> critical_ops(const Problem& problem, std::span<const Bytes> profile,
                               std::size_t count);

}  // namespace lowtide::solve::bounds
