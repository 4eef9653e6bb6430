// The table of block solvers: a new one adds a line here.
#include "lowtide/solve/hierarchy/block/all_or_nothing.h"
#include "lowtide/solve/hierarchy/block/block_solver.h"
#include "lowtide/solve/hierarchy/block/contracted.h"
#include "lowtide/solve/hierarchy/block/flat.h"
#include "lowtide/solve/hierarchy/block/h_ilp.h"
#include "lowtide/solve/hierarchy/block/prices.h"
#include "lowtide/solve/hierarchy/block/rotor.h"

namespace lowtide::solve::hierarchy {

BlockSolverTable make_block_solvers() {
  BlockSolverTable table;
  table.add(make_save_all());
  table.add(make_recompute_all());
  table.add(make_prices());
  table.add(make_rotor());
  table.add(make_h_ilp());
  table.add(make_contracted());
  for (auto& flat : make_flat()) table.add(std::move(flat));
  return table;
}

const BlockSolver* BlockSolverTable::find(std::string_view name) const {
  for (const auto& one : all_)
    if (one->name() == name) return one.get();
  return nullptr;
}

}  // namespace lowtide::solve::hierarchy
