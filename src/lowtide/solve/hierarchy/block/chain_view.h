// A level as a chain of stages, for those who plan chains.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/plan/problem.h"
#include "lowtide/solve/hierarchy/block/level_view.h"

namespace lowtide::solve::hierarchy {

// Numbers that depend on whether the stage runs for the first time, before `rest`, or again. Then
// what is given to `rest` is held by the surroundings; the first time it is not.
struct ByRun {
  Bytes again, first;
  Bytes of(bool is_first) const { return is_first ? first : again; }
  Bytes& of(bool is_first) { return is_first ? first : again; }
};

// Forward and backward of a stage, with what lies between them held. Peaks are beyond what is in
// use before the run, but the backward one counts what was held for it. The border before the stage
// counts in those `with_border`, up to its last use in the run; whoever holds it anyway leaves it
// out.
struct StageOption {
  std::vector<LevelStep> forward, backward;
  Ticks forward_time, backward_time;
  bool needs_forward = false;  // the backward reads something that the forward made
  bool needs_inside = false;   // and that does not cross to the next stage
  bool needs_border = false;   // or something that crosses to the next stage
  ByRun forward_peak, backward_peak, forward_peak_with_border, backward_peak_with_border;
  // Between the two: what the backward reads of what the forward made, with all of the border to
  // the next stage if that is needed too, and what it reads of the border before.
  ByRun held, held_before;
};

// What lies between two places where at most a few tensors cross from forward to forward nodes.
struct Stage {
  std::vector<StageOption> options;
  // The forward alone with nothing saved; may be a part of a plan if it may run again.
  std::vector<LevelStep> pass;
  bool may_pass = false;
  Ticks pass_time;
  ByRun pass_peak, pass_peak_with_border;  // if what crosses into the stage ends there too
  ByRun border;                            // what crosses to the next stage
  Bytes lasting;                           // what it makes that is given to `rest` or is an output
  Bytes in_use;                            // of what backward nodes made, right before its backward
};

struct ChainView {
  std::vector<Stage> stages;
  Bytes outputs;       // what forward nodes make that stays to the end
  std::string reason;  // why there is no chain; empty if there is one

  // The view and the level must be those of the block. Neighbours are joined until there are no
  // more stages than so many. Where the order is free, there are options too whose backward runs in
  // the order that leaves the least in use. Without limits only the reason is looked for; if they
  // say stop, it is that.
  ChainView(const BlockProblem& block, const Level& level, const LevelView& view,
            std::size_t most_stages, Order order, Limits* limits);
};

}  // namespace lowtide::solve::hierarchy
