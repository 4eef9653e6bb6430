// A level as a chain of stages, for solvers of chains.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/hierarchy/block/level_view.h"

namespace lowtide::solve::hierarchy {

// Bytes that depend on whether the stage runs for the first time (before `rest`) or again. When it
// runs again, the surroundings hold the tensors that `rest` reads; the first time they do not.
struct ByRun {
  Bytes again, first;
  Bytes of(bool is_first) const { return is_first ? first : again; }
  Bytes& of(bool is_first) { return is_first ? first : again; }
};

// One way to run forward and backward of a stage, with the tensors between them held. Peaks exclude
// the bytes in use before the run, but the backward peak includes the held tensors. Peaks
// `with_border` also include the border before the stage up to its last use in the run; the others
// are for callers that hold the border anyway.
struct StageOption {
  std::vector<LevelStep> forward, backward;
  Ticks forward_time, backward_time;
  bool needs_forward = false;  // the backward reads tensors that the forward made
  bool needs_inside = false;   // some of these do not cross to the next stage
  bool needs_border = false;   // some of these cross to the next stage
  ByRun forward_peak, backward_peak, forward_peak_with_border, backward_peak_with_border;
  // held: bytes between forward and backward: tensors of the forward that the backward reads, with
  // the whole border to the next stage if it reads any of it. held_before: bytes of the border
  // before the stage that the backward reads.
  ByRun held, held_before;
};

// A part of the chain between two cuts, which few tensors cross from forward to forward nodes.
struct Stage {
  std::vector<StageOption> options;
  // The forward alone, with nothing saved; allowed in a plan if all of it is recomputable.
  std::vector<LevelStep> pass;
  bool may_pass = false;
  Ticks pass_time;
  ByRun pass_peak, pass_peak_with_border;  // if the border before the stage is freed in it too
  ByRun border;                            // tensors that cross to the next stage
  Bytes lasting;  // tensors that it makes which `rest` reads or which are outputs
  Bytes in_use;   // tensors of backward nodes, right before its backward
};

struct ChainView {
  std::vector<Stage> stages;
  Bytes outputs;       // tensors of forward nodes that stay to the end
  std::string reason;  // why there is no chain; empty if there is one

  // `view` and `level` must be those of the block. Neighbouring stages are joined until there are
  // at most `most_stages`. With a free order there are also options whose backward runs in an order
  // that keeps the fewest bytes in use. Without limits only the reason is computed. If the limits
  // stop the constructor, that is the reason.
  ChainView(const BlockProblem& block, const Level& level, const LevelView& view,
            std::size_t most_stages, Order order, Limits* limits);
};

}  // namespace lowtide::solve::hierarchy
