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

// What the cut point leaves possible after it. Refers to both.
class AfterCut {
 public:
  // Linear in the ops.
  AfterCut(const Graph& graph, const CutPoint& cut_point);

  // Whether an op that comes no later than the cut point changes it in place.
  bool changed(TensorId id) const { return changed_[id.index()] != 0; }
  // Whether the op may run after the cut point, again or, if it may come on either side, for the
  // first time.
  bool can_run(OpId op) const;

 private:
  const Graph& graph_;
  const CutPoint& cut_point_;
  std::vector<std::uint8_t> changed_;
};

// For each position of the given order the bytes in use when every op is computed once in that
// order and everything is freed as early as it may be. Linear.
std::vector<Bytes> own_profile(const Graph& graph);

// Ops whose cut points promise the best bounds, the best first: from each of `count` equal shares
// of the steps of the given order that need more than the budget, the one that needs most.
std::vector<OpId> critical_ops(const Problem& problem, std::span<const Bytes> profile,
                               std::size_t count);

// The same, but only ops that follow one another in every plan of the problem, in that order: of
// each share the op that needs most among those that go with the ones chosen before it. None of a
// share in which there is no such op.
std::vector<CutPoint> critical_chain(const Problem& problem, std::span<const Bytes> profile,
                                     std::size_t count);

}  // namespace lowtide::solve::bounds
