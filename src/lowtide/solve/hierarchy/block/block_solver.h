// The interface of block solvers, and their table.
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

// The input of a block solver. Everything that it refers to outlives the call.
struct BlockTask {
  const BlockProblem& block;
  const Level& level;  // for solvers that choose among options of the inner blocks
  // The whole network has one budget. An option that exceeds every budget may still be useful, but
  // rarely is.
  std::span<const BlockBudget> budgets;
  std::span<const BlockOption> known;  // options found so far, to start from
  const SolverTable* solvers = nullptr;
  std::uint64_t seed = 0;
  int threads = 1;
  Order order = Order::given;  // order of first computations
};

class BlockSolver {
 public:
  virtual ~BlockSolver() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;  // its purpose, in one line
  // What the solver needs but is not installed; empty if nothing is missing. The search for it may
  // take seconds; `stop` ends it.
  virtual std::string missing(const std::function<bool()>& /*stop*/ = {}) const { return {}; }
  // Whether the solver is slow. Then a plan must exist before it is called.
  virtual bool is_slow() const { return false; }
  // Whether the solver is so fast at any level that slow solvers start from its options.
  virtual bool is_quick_start() const { return false; }
  // Whether a further call continues from the options found so far.
  virtual bool goes_on() const { return false; }
  // Whether its options are expensive enough to be cached on disk.
  virtual bool is_kept() const { return false; }
  // The version of external software on which its options depend; asked after `missing`.
  virtual std::string version() const { return {}; }
  // Whether the solver can solve this block.
  virtual Support supports(const BlockTask& task) const = 0;
  // Returns options, priced by `task.block`. Deterministic for a seed and a work limit. Returns the
  // options found so far within 50 ms of a cancel or a deadline.
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

// All built-in block solvers, in the order of the documentation.
BlockSolverTable make_block_solvers();

}  // namespace lowtide::solve::hierarchy
