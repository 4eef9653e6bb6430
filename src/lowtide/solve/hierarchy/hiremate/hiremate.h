// HiRemate as a solver: a graph as a hierarchy of blocks, each solved for several budgets, the best
// of what they can do chosen one level up.
#pragma once

#include <memory>

#include "lowtide/solve/hierarchy/block/block_solver.h"
#include "lowtide/solve/hierarchy/partition/partitioner.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::hierarchy {

// With all partitioners and block solvers of ours.
std::unique_ptr<Solver> make_hiremate();
// With these.
std::unique_ptr<Solver> make_hiremate(partition::PartitionerTable partitioners,
                                      BlockSolverTable block_solvers);

}  // namespace lowtide::solve::hierarchy
