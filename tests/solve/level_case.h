// A level to try block solvers on: a graph, its partition, and what the blocks in it can do.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lowtide/solve/hierarchy/block/block_solver.h"

namespace lowtide {

struct LevelCase {
  // The whole graph with the root's parts as nodes; or the first block inside that has a backward.
  // Blocks inside can save all or compute all again.
  LevelCase(Graph graph, const Partition& partition, bool whole = true);

  Graph graph;
  Partition partition;
  std::unique_ptr<solve::hierarchy::BlockProblem> block;
  std::vector<std::vector<solve::hierarchy::BlockOption>> options;
  solve::hierarchy::Level level;

  std::vector<solve::hierarchy::BlockOption> solve(
      const solve::hierarchy::BlockSolver& solver,
      std::vector<solve::hierarchy::BlockBudget> budgets,
      const std::vector<solve::hierarchy::BlockOption>& known = {},
      const LimitSettings& limits = {}, Order order = Order::given) const;
};

// The root alone.
Partition no_partition(const Graph& graph);
// By a partitioner of the table, with options as "name=value name=value".
Partition partition_by(std::string_view name, const Graph& graph, std::string_view options);

// The least time of all sequences of steps of the level within the budget, with at most so many
// steps beyond the first of each node; none if there is no such sequence.
std::optional<Ticks> least_time(const LevelCase& level, solve::hierarchy::BlockBudget budget,
                                std::size_t most_again);

Bytes share_of(Bytes bytes, double share);

// The solver finds that least time, and keeps the budget, on small networks whose blocks have two
// options, wherever there is such a sequence.
void check_least_times(const solve::hierarchy::BlockSolver& solver);

}  // namespace lowtide
