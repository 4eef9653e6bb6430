// The tensors kept at several cut points (stages), and the runs that serve them, as one network.
// Given order. Private to the solver; see stage_model.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::bounds {

// A cut selects the runs (the source's side). Nodes: first the cells, then the turns, then one for
// each dead tensor that several turns of a stage may read.
struct StageModel {
  // A range of positions in which an op runs again at least once if one of its turns there is
  // taken. Cells of one op are disjoint, so each pays for a separate run.
  struct Cell {
    OpId op;
    std::size_t past;  // position before which it has run
  };
  // A turn: the op runs again after the stage, within the cell. It has a node of its own only if
  // the run needs a dead tensor; otherwise the node of the cell stands for it.
  struct Turn {
    std::int32_t cell;
  };
  // A tensor that is live at the stage in the unplanned step and read later by a first computation,
  // or live at the end. It may be evicted only if the node is on the source's side.
  struct Want {
    std::int32_t node, stage;
    std::int64_t bytes;
  };
  // A tensor that is dead at the stage. It must be live there if `reader` is on the source's side
  // and `maker` is not (-1: it cannot be recomputed).
  struct Hold {
    std::int32_t reader, maker, stage;
    std::int64_t bytes;
  };

  // If `from` is on the source's side, so is `to`.
  struct Join {
    std::int32_t from, to;
  };

  // `stages`: positions of the given order, ascending.
  StageModel(const Problem& problem, std::span<const std::size_t> stages);

  std::size_t decisions() const { return cells.size() + turns.size(); }

  std::vector<Cell> cells;
  std::vector<Turn> turns;
  std::vector<Want> wants;
  std::vector<Hold> holds;
  std::vector<Join> joins;
  std::vector<std::int64_t> room;  // bytes at each stage beside those in use in every plan
  std::size_t nodes = 0;
};

}  // namespace lowtide::solve::bounds
