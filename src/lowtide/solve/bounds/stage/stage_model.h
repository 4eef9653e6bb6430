// The tensors kept at several cut points (stages), and the runs that serve them, as one network.
// Given order. Private to the solver; see stage_model.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lowtide/plan/problem.h"

namespace lowtide::solve::bounds {

// A cut says which runs are made (the source's side). Nodes: first the cells, then the turns, then
// one for each dead tensor that several turns of a stage may read.
struct StageModel {
  // A piece of the plan in which an op runs again at least once if one of its turns there is taken.
  // Cells of one op lie apart, so each pays a run of its own.
  struct Cell {
    OpId op;
    std::size_t past;  // position before which it has run
  };
  // "The op runs again after the stage, for what lies in the cell." A node of its own only where
  // that needs something dead at the stage; else the cell stands for it.
  struct Turn {
    std::int32_t cell;
  };
  // Live at the stage and read later by a first computation, or live at the end: gone only if the
  // node is on the source's side.
  struct Want {
    std::int32_t node, stage;
    std::int64_t bytes;
  };
  // Dead at the stage: live there all the same if `reader` is on the source's side and `maker` is
  // not (-1: nothing can make it again).
  struct Hold {
    std::int32_t reader, maker, stage;
    std::int64_t bytes;
  };

  // Whoever is on the source's side takes `to` along.
  struct Join {
    std::int32_t from, to;
  };

  // `stages` are positions of the given order, ascending.
  StageModel(const Problem& problem, std::span<const std::size_t> stages);

  std::size_t decisions() const { return cells.size() + turns.size(); }

  std::vector<Cell> cells;
  std::vector<Turn> turns;
  std::vector<Want> wants;
  std::vector<Hold> holds;
  std::vector<Join> joins;
  std::vector<std::int64_t> room;  // bytes at each stage beside what is in use in any case
  std::size_t nodes = 0;
};

}  // namespace lowtide::solve::bounds
