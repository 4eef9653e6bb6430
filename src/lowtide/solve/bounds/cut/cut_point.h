// A cut point: the first computation of an op, with the ops whose first computations certainly come
// before and after it. Private to the solver.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::bounds {

// The position of another op's first computation in every plan of the problem. `either` occurs only
// with a free order.
enum class Side : std::uint8_t { before, at, after, either };

struct CutPoint {
  OpId op;
  std::vector<Side> side;  // of each op
};

// Linear.
CutPoint cut_point_of(const Problem& problem, OpId op);

// What may still run after the cut point. Keeps references to its arguments.
class AfterCut {
 public:
  // Linear in the ops.
  AfterCut(const Graph& graph, const CutPoint& cut_point);

  // Whether an op before or at the cut point changes the tensor in place.
  bool changed(TensorId id) const { return changed_[id.index()] != 0; }
  // Whether the op may run after the cut point: as a recomputation, or, with side `either`, for the
  // first time.
  bool can_run(OpId op) const;

 private:
  const Graph& graph_;
  const CutPoint& cut_point_;
  std::vector<std::uint8_t> changed_;
};

// The memory profile of the unplanned step: bytes in use at each position of the given order, with
// every tensor freed as early as possible. Linear.
std::vector<Bytes> own_profile(const Graph& graph);

// Ops whose cut points promise the best bounds, the best first. The steps of the given order that
// exceed the budget are divided into `count` equal shares; each share contributes its highest step.
std::vector<OpId> critical_ops(const Problem& problem, std::span<const Bytes> profile,
                               std::size_t count);

// The same, but the ops follow one another in every plan of the problem, and are returned in that
// order. Each share contributes its highest step among the ops compatible with those chosen before;
// a share without such an op contributes none.
std::vector<CutPoint> critical_chain(const Problem& problem, std::span<const Bytes> profile,
                                     std::size_t count);

}  // namespace lowtide::solve::bounds
