// The interface that every block solver has, and the table that everything iterates over.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/base/limits.h"
#include "lowtide/solve/hierarchy/block/block_option.h"
#include "lowtide/solve/hierarchy/block/block_problem.h"
#include "lowtide/solve/hierarchy/block/level.h"
#include "lowtide/solve/interface/solver.h"

namespace lowtide::solve::hierarchy {

// What is asked of a block solver. All that it points to outlives the call.
struct BlockTask {
  const BlockProblem& block;
  const Level& level;  // for those that choose among options of the blocks inside
  // One for the whole network. An option need not keep one to be of use, but those that do not keep
  // any are worth little.
  std::span<const BlockBudget> budgets;
  std::span<const BlockOption> known;  // options that there are: something to begin from
  const SolverTable* solvers = nullptr;
  std::uint64_t seed = 0;
  int threads = 1;
  Order order = Order::given;  // of first computations
};

class BlockSolver {
 public:
  virtual ~BlockSolver() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // what it is for, in a line
  // What must be there for it to run and is not: empty if nothing is missing. To look for it may
  // take seconds; `stop` ends that.
  virtual std::string missing(const std::function<bool()>& /*stop*/ = {}) const { return {}; }
  // Whether it takes long: then there is to be a plan before it is asked.
  virtual bool is_slow() const { return false; }
  // Whether it takes so little at any level that what is slow begins from what it finds.
  virtual bool is_quick_start() const { return false; }
  // Whether, asked again, it goes on from the options that there are.
  virtual bool goes_on() const { return false; }
  // Whether what it finds is dear enough to be kept on disk from one run to the next.
  virtual bool is_kept() const { return false; }
  // Of what others have made, if what it finds depends on that; asked after `missing`.
  virtual std::string version() const { return {}; }
  // Whether it suits the block.
  virtual Support supports(const BlockTask& task) const = 0;
  // Options, priced by `task.block`. Deterministic for the seed and a limit of work; returns within
  // 50 ms of a cancel or a deadline with what there is.
  virtual std::vector<BlockOption> solve(const BlockTask& task, Limits& limits) const = 0;
};

class BlockSolverTable {
 public:
  void add(std::unique_ptr<BlockSolver> one) { all_.push_back(std::move(one)); }
  std::span<const std::unique_ptr<BlockSolver>> all() const { return all_; }
  const BlockSolver* find(std::string_view name) const;  // null if there is none

 private:
  std::vector<std::unique_ptr<BlockSolver>> all_;
};

// Every block solver of ours, in the order in which people should read of them.
BlockSolverTable make_block_solvers();

}  // namespace lowtide::solve::hierarchy
