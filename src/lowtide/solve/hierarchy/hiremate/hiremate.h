// HiRemate: a graph is planned as a hierarchy of blocks. Each block is solved for several budgets,
// and the level above chooses among its options.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::hierarchy {

// With all built-in partitioners and block solvers.
std::unique_ptr<Solver> make_hiremate();
// With the given partitioners and block solvers.
std::unique_ptr<Solver> make_hiremate(partition::PartitionerTable partitioners,
                                      BlockSolverTable block_solvers);

}  // namespace lowtide::solve::hierarchy
